import { AuthenticationRequiredError } from '../errors/session.errors.js';
import type { CallHandler, CanActivate, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { defer, type Observable, switchMap } from 'rxjs';
import { callOf } from './call.js';
import { guardsOf, hasForeignGuard } from './handler-metadata.js';
import type { GuardedConnections } from './open-connections.js';
import type { RequestSession } from './request-session.js';

export const AUTHENTICATION = Symbol('AUTHENTICATION');

/** The oldest sign-in that a handler accepts: `maxAge` is in milliseconds. Null if it requires no sign-in. */
export type AuthenticationRule = { readonly maxAge: number } | null;

export const PUBLIC = null;

export const SIGNED_IN = { maxAge: Infinity } as const;

/**
 * Refuses a request whose user was signed out since the request began, whatever guard, pipe or handler decides by its
 * session: a client may send a body for minutes. It comes before all guards of the application, and asks the store only
 * when the session was loaded more than a second ago. What a guard of the application lets in ends with the login, also
 * with one that the guard itself has made; AuthenticatedGuard sees to that itself.
 */
export class RevocationGuard implements CanActivate {
  readonly #guarded = new WeakMap<object, WeakMap<object, boolean>>();

  /** `isEverythingGuarded`: whether a global guard is the application's. */
  constructor(
    private readonly connections: GuardedConnections,
    private readonly isEverythingGuarded: boolean,
  ) {}

  /** @throws AuthenticationRequiredError when the login has ended; SessionStoreError when the store failed */
  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const { commit } = callOf(context);
    if (!commit) return true;
    const { session } = commit;
    const isGuarded = this.#isGuarded(context.getHandler(), context.getClass());
    if (!isSignedIn(session)) {
      // A guard may sign its user in, who is stored before the response begins.
      if (isGuarded) commit.onPassed(() => isSignedIn(session) && this.connections.add(session));
      return true;
    }
    if (isGuarded) this.connections.add(session);
    return refuseEnded(session);
  }

  #isGuarded(handler: object, controller: object): boolean {
    const known = this.#guarded.get(controller) ?? new WeakMap<object, boolean>();
    let isGuarded = known.get(handler);
    if (isGuarded === undefined) {
      isGuarded = this.#looksGuarded(handler, controller);
      this.#guarded.set(controller, known.set(handler, isGuarded));
    }
    return isGuarded;
  }

  #looksGuarded(handler: object, controller: object): boolean {
    if (hasForeignGuard([...guardsOf(controller), ...guardsOf(handler)])) return true;
    if (!this.isEverythingGuarded) return false;
    const rules = [handler, controller].map((each) => Reflect.getMetadata(AUTHENTICATION, each) as AuthenticationRule);
    return rules.find((rule) => rule !== undefined) !== PUBLIC;
  }
}

/** The same behind the interceptors of the application: one that takes an upload has waited for the client. */
export class RevocationInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const session = callOf(context).commit?.session;
    const isFresh = !isSignedIn(session) || refuseEnded(session);
    return isFresh === true ? next.handle() : defer(() => isFresh).pipe(switchMap(() => next.handle()));
  }
}

/** By what was loaded: what this request has changed since then is no login that could have ended. */
function isSignedIn(session: RequestSession | undefined): session is RequestSession {
  return session?.existing?.storedPrincipal !== undefined;
}

function refuseEnded(session: RequestSession): true | Promise<true> {
  const asked = session.isStillAlive();
  if (asked === true) return true;
  return asked.then((isAlive) => {
    if (isAlive) return true;
    // The refusal depends on the session.
    session.use();
    throw new AuthenticationRequiredError('not-authenticated');
  });
}
