import { type CanActivate, type ExecutionContext, Inject, Injectable, Optional, SetMetadata } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { AuthenticationRequiredError } from '../errors/authentication-required.error.js';
import { SessionStateError } from '../errors/session.errors.js';
import { isGuardedBy, OWN_GUARD } from '../http/is-guarded-by.js';
import type { RequestSession } from '../http/request-session.js';
import { RequestSessions } from '../http/request-sessions.js';
import { SESSION_MODULE_MISSING } from '../http/session.decorators.js';
import { type Call, callOf, mayLast, sessionOfCall } from '../http/call.js';
import { AUTHENTICATION, type AuthenticationRule, PUBLIC, SIGNED_IN } from '../http/authentication-rule.js';

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
      throw new AuthenticationRequiredError('not-authenticated', required);
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
