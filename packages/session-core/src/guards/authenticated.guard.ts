import {
  type CanActivate,
  type ExecutionContext,
  Inject,
  Injectable,
  type OnModuleInit,
  Optional,
  SetMetadata,
  type Type,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import {
  AuthenticationRequiredError,
  InvalidSessionOptionsError,
  SessionStateError,
} from '../errors/session.errors.js';
import { type Call, callOf, mayLast, sessionOfCall } from '../http/call.js';
import { GUARDS, type Handler, isGuardedBy, OWN_GUARD, putFirstAmong } from '../http/handler-metadata.js';
import type { RequestSession } from '../http/request-session.js';
import { RequestSessions } from '../http/request-sessions.js';
import { AUTHENTICATION, type AuthenticationRule, PUBLIC, SIGNED_IN } from '../http/revocation.js';
import { RouteExplorer } from '../http/route.explorer.js';
import { SESSION_MODULE_MISSING } from '../http/session.decorators.js';
import { parseDuration } from '../option-reading/duration.js';

// The guard may run several times for one request: for all routes, the class and the handler. All runs get the same
// context object. A refusal is not remembered, because a guard of the application may call this one and catch the
// error.
const passed = new WeakSet<ExecutionContext>();

/**
 * Refuses requests without a signed-in user. `@Authenticated()` and `@RecentlyAuthenticated()` put it on a handler or a
 * class. Use it for all routes, resolvers and gateways with
 * `{ provide: APP_GUARD, useExisting: AuthenticatedGuard }`, and mark exceptions with `@Public()`.
 */
@Injectable()
@SetMetadata(OWN_GUARD, true)
export class AuthenticatedGuard implements CanActivate {
  readonly #sessions: RequestSessions;

  /** @internal Inject it. */
  constructor(
    @Inject(Reflector) private readonly reflector: Reflector,
    // Optional, so that our own error names the missing module.
    @Optional() @Inject(RequestSessions) sessions?: RequestSessions,
  ) {
    if (!sessions) throw new SessionStateError(SESSION_MODULE_MISSING);
    this.#sessions = sessions;
  }

  /**
   * Returns true, or throws.
   * Asks the store again when the session was loaded more than a second ago, so that a request that began before a
   * sign-out is refused after it.
   * @throws AuthenticationRequiredError when it refuses the request; SessionStoreError when the store failed, so the
   *   guard cannot know who the client is
   */
  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    if (passed.has(context)) return true;
    const handler = [context.getHandler(), context.getClass()];
    const marked = this.reflector.getAllAndOverride<AuthenticationRule | undefined>(AUTHENTICATION, handler);
    const rule = marked === PUBLIC && isGuardedBy(AuthenticatedGuard, context.getHandler()) ? SIGNED_IN : marked;
    if (rule === null) return true;
    const call = callOf(context);
    const session = sessionOfCall(call);
    const answer =
      session instanceof Promise ? session.then((loaded) => this.#check(loaded, rule)) : this.#check(session, rule);
    const pass = (held: RequestSession) => this.#pass(context, call, held);
    return answer instanceof Promise ? answer.then(pass) : pass(answer);
  }

  #check(
    session: RequestSession | undefined,
    { maxAge }: { readonly maxAge: number } = SIGNED_IN,
  ): RequestSession | Promise<RequestSession> {
    const required = maxAge === Infinity ? undefined : maxAge / 1000;
    // The response depends on the session, even if it is a refusal.
    session?.use();
    // Overrides the outage policy of the handler: without the session, a signed-in user would look like a stranger.
    session?.applyOutagePolicy('reject');
    const existing = session?.existing;
    if (!session || existing?.principalName === undefined)
      throw session?.refusal ?? new AuthenticationRequiredError('not-authenticated', required);
    const isAlive = session.isStillAlive();
    if (isAlive === true && required === undefined) return session;
    return this.#checkLater(isAlive, required, existing.authenticatedAt).then(() => session);
  }

  async #checkLater(
    isAlive: true | Promise<boolean>,
    required: number | undefined,
    authenticatedAt: number | undefined,
  ): Promise<void> {
    if (!(await isAlive)) throw new AuthenticationRequiredError('not-authenticated', required);
    if (required === undefined) return;
    if (authenticatedAt !== undefined) {
      const now = await this.#sessions.parts.repository.now();
      if (now - authenticatedAt <= required * 1000) return;
    }
    throw new AuthenticationRequiredError('not-recently-authenticated', required);
  }

  /** What lasts from here on ends with the session. */
  #pass(context: ExecutionContext, call: Call, session: RequestSession): true {
    passed.add(context);
    if (mayLast(call)) this.#sessions.guarded.add(session);
    return true;
  }
}

/**
 * Requires a signed-in user, which is a session with a principal. Other clients get a 401 response before the handler
 * runs. Put it on HTTP handlers, GraphQL resolvers and message handlers of gateways, or on a class for all of its
 * handlers. It runs before the guards that `@UseGuards()` puts on the same handler or class. What it lets in is closed
 * when the session ends: a response that is still open, and the connection of a subscription.
 *
 * `@Authenticated()`, `@RecentlyAuthenticated()` or `@Public()` on a handler replaces the one on its class. Two of them
 * on one handler, or on one class, throw a TypeError.
 */
export function Authenticated(): ClassDecorator & MethodDecorator {
  return marked(SIGNED_IN);
}

/**
 * Requires a user who signed in at most `maxAge` ago, by the clock of the store. Use it where a stolen or forgotten
 * session does most harm, such as a change of the password or of the address. When the `reason` of a 401 response is
 * `'not-recently-authenticated'`, your page asks for the password again.
 * @param maxAge a duration, such as `'5m'`. @throws TypeError for anything else
 */
export function RecentlyAuthenticated(maxAge: string): ClassDecorator & MethodDecorator {
  const milliseconds = parseDuration(maxAge);
  if (typeof milliseconds === 'number' && milliseconds > 0) return marked({ maxAge: milliseconds });
  const problem = typeof milliseconds === 'string' ? milliseconds : 'must be longer than 0';
  throw new TypeError(`The argument of @RecentlyAuthenticated() ${problem}`);
}

/**
 * An exception to `@Authenticated()` on the class and to the guard of all routes, but not to
 * `@UseGuards(AuthenticatedGuard)` on the same handler.
 */
export function Public(): ClassDecorator & MethodDecorator {
  return marked(PUBLIC);
}

/** @throws TypeError if another rule is already set: it is unclear which of the two was meant */
function marked(rule: AuthenticationRule): ClassDecorator & MethodDecorator {
  const mark = SetMetadata(AUTHENTICATION, rule);
  return <T>(target: object, key?: string | symbol, descriptor?: TypedPropertyDescriptor<T>) => {
    const place = (descriptor?.value as object | undefined) ?? target;
    const other = Reflect.getOwnMetadata(AUTHENTICATION, place) as AuthenticationRule | undefined;
    if (other !== undefined && other?.maxAge !== rule?.maxAge) {
      const name = key === undefined ? (target as Type).name : `${target.constructor.name}.${String(key)}`;
      throw new TypeError(`${name} has ${decoratorOf(rule)} and ${decoratorOf(other)}: remove one of them`);
    }
    mark(target, key as string, descriptor as PropertyDescriptor);
    // First: `@UseGuards()` appends, whether it is evaluated before or after.
    if (rule !== PUBLIC) putFirstAmong(GUARDS, AuthenticatedGuard, place);
  };
}

function decoratorOf(rule: AuthenticationRule): string {
  if (rule === PUBLIC) return '@Public()';
  return rule.maxAge === Infinity ? '@Authenticated()' : `@RecentlyAuthenticated('${rule.maxAge / 1000}s')`;
}

/**
 * Refuses to start with GraphQL fields that look protected but are not: by default, Nest calls no guards for fields.
 */
@Injectable()
export class GuardedFieldsCheck implements OnModuleInit {
  constructor(
    @Inject(RouteExplorer) private readonly routes: RouteExplorer,
    @Inject(Reflector) private readonly reflector: Reflector,
  ) {}

  /** @throws InvalidSessionOptionsError that names the unprotected fields */
  onModuleInit(): void {
    const open = this.routes.fieldsWithoutGuards().filter((field) => this.#looksGuarded(field));
    if (open.length === 0) return;
    const names = open.map(({ controller, method }) => `${controller.name}.${(method as Type).name}`);
    throw new InvalidSessionOptionsError('SessionModule', [
      `${[...new Set(names)].join(', ')} would be open to everyone, because Nest calls no guards for a field, ` +
        'neither its own nor those of its class. ' +
        "Set `fieldResolverEnhancers: ['guards']` in GraphQLModule.forRoot(), or mark the field @Public().",
    ]);
  }

  #looksGuarded({ controller, method }: Handler): boolean {
    if (isGuardedBy(AuthenticatedGuard, method)) return true;
    const rule = this.reflector.getAllAndOverride<AuthenticationRule | undefined>(AUTHENTICATION, [
      method as Type,
      controller,
    ]);
    return rule !== PUBLIC && isGuardedBy(AuthenticatedGuard, controller);
  }
}
