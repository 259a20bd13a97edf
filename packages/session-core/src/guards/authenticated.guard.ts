import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { RequestSession } from '../http/request-session.js';
import { RequestSessions } from '../http/request-sessions.js';
import { requestSessionOfCall } from '../http/session-of-call.js';
import { AuthenticationRequiredError } from './authentication-required.error.js';
import { AUTHENTICATION, type AuthenticationRule, isGuardedBy, PUBLIC, SIGNED_IN } from './authentication-rule.js';

// Of a handler and its class, and of all routes, several guards may run: they get the same object. A refusal is not kept,
// because a guard of the application may ask only to know, and catch it.
const passed = new WeakSet<ExecutionContext>();

/**
 * Refuses requests in whose session nobody is signed in. `@Authenticated()` and `@RecentlyAuthenticated()` put it on a
 * handler or a class. Use it for all routes, resolvers and gateways:
 * `{ provide: APP_GUARD, useExisting: AuthenticatedGuard }`, and `@Public()` for exceptions.
 */
@Injectable()
export class AuthenticatedGuard implements CanActivate {
  /** @internal Inject it. */
  constructor(
    @Inject(Reflector) private readonly reflector: Reflector,
    @Inject(RequestSessions) private readonly sessions: RequestSessions,
  ) {}

  /**
   * Whether a request may go on: always, or it throws.
   * @throws AuthenticationRequiredError for a request that is refused; SessionStoreError when the store failed: who the
   *   client is is not known then
   */
  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    if (passed.has(context)) return true;
    const handler = [context.getHandler(), context.getClass()];
    const marked = this.reflector.getAllAndOverride<AuthenticationRule | undefined>(AUTHENTICATION, handler);
    const rule = marked === PUBLIC && isGuardedBy(AuthenticatedGuard, context.getHandler()) ? SIGNED_IN : marked;
    if (rule === null) return true;
    const session = requestSessionOfCall(context);
    const answer =
      session instanceof Promise ? session.then((loaded) => this.#check(loaded, rule)) : this.#check(session, rule);
    return answer instanceof Promise ? answer.then(() => pass(context)) : pass(context);
  }

  #check(
    session: RequestSession | undefined,
    { maxAge }: { readonly maxAge: number } = SIGNED_IN,
  ): boolean | Promise<boolean> {
    const required = maxAge === Infinity ? undefined : maxAge / 1000;
    // The response depends on the session, also when it is a refusal.
    session?.use();
    // Whatever the handler wants for an outage: without its session, a signed-in user would look like a stranger.
    session?.applyOutagePolicy('reject');
    const existing = session?.existing;
    if (existing?.principalName === undefined) throw new AuthenticationRequiredError('not-authenticated', required);
    return required === undefined || this.#checkAge(existing.authenticatedAt, maxAge);
  }

  async #checkAge(authenticatedAt: number | undefined, maxAge: number): Promise<boolean> {
    if (authenticatedAt !== undefined) {
      const now = await this.sessions.parts.repository.now();
      if (now - authenticatedAt <= maxAge) return true;
    }
    throw new AuthenticationRequiredError('not-recently-authenticated', maxAge / 1000);
  }
}

function pass(context: ExecutionContext): true {
  passed.add(context);
  return true;
}
