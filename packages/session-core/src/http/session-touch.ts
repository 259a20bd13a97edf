import type { ResolvedSessionOptions } from '../configuration/session.options.js';
import { TOUCHES_PER_TIMEOUT } from '../configuration/timeout.options.js';
import { SessionStoreError } from '../errors/session.errors.js';
import { FailureReasons } from '../logging/failure-reasons.js';
import { logger } from '../logging/session.logger.js';
import { shownError } from '../logging/shown-error.js';
import type { SessionRepository } from '../repository/session.repository.js';
import { LONGEST_COOKIE } from '../resolvers/cookie.options.js';
import type { SessionClient, SessionIdResolver } from '../resolvers/session-id.resolver.js';
import { COOKIE_MAX_AGE_ATTRIBUTE, REMEMBER_ME_ATTRIBUTE } from '../session/attribute-names.js';
import type { TouchOutcome } from '../session/session-change.js';
import type { TrackedSession } from '../session/tracked-session.js';

type Options = Pick<ResolvedSessionOptions, 'timeout' | 'touchInterval'>;

/** Why renewals by a store fail, until one succeeds: a session that is not renewed asks for it with each request. */
const failures = new WeakMap<SessionRepository, FailureReasons>();

/** Milliseconds until a renewal is due, 0 or less when it is; undefined for a session that never expires. */
export function touchDueIn({ idleTime, maxInactiveInterval }: TrackedSession, options: Options): number | undefined {
  return idleTime === undefined ? undefined : touchIntervalOf(maxInactiveInterval, options) - idleTime;
}

export function isTouchDue(session: TrackedSession, options: Options): boolean {
  const dueIn = touchDueIn(session, options);
  return dueIn !== undefined && dueIn <= 0;
}

/** A session with a shorter idle timeout of its own must be touched more often, or it expires while in use. */
function touchIntervalOf(maxInactiveInterval: number, { timeout, touchInterval }: Options): number {
  const isShorter = maxInactiveInterval > 0 && (timeout < 0 || maxInactiveInterval < timeout);
  return isShorter ? Math.min(touchInterval, (maxInactiveInterval * 1000) / TOUCHES_PER_TIMEOUT) : touchInterval;
}

/** Sent after the load, by SessionRouteGuard when the route decides, or before the headers. A save renews as well. */
export class SessionTouch {
  #touch: (() => Promise<TouchOutcome | 'failed'>) | undefined;
  #sent: Promise<TouchOutcome | 'failed'> | undefined;
  #outcome: TouchOutcome | 'failed' | undefined;

  /**
   * @param touch touches the session, and never rejects
   * @param isRolling whether the cookie has a lifetime, so that each touch sends it again
   * @param isNeeded whether it cannot be cancelled
   */
  constructor(
    touch: () => Promise<TouchOutcome | 'failed'>,
    readonly isRolling = false,
    private readonly isNeeded = false,
  ) {
    this.#touch = touch;
  }

  /** With `isNeeded`, sent even when the request is no access. Never rejects: a request must not fail with it. */
  static of(
    repository: SessionRepository,
    session: TrackedSession,
    isRolling: boolean,
    isNeeded = false,
  ): SessionTouch {
    return new SessionTouch(
      async () => {
        try {
          const outcome = await repository.touch(session);
          failures.delete(repository);
          return outcome;
        } catch (error) {
          reportFailure(repository, session, error);
          return 'failed';
        }
      },
      isRolling,
      isNeeded,
    );
  }

  get isDue(): boolean {
    return this.#touch !== undefined;
  }

  /** Whether it has renewed the session, under the id with which that was loaded. */
  get hasRenewed(): boolean {
    // Not `forwarded`: a session that another request rotated has another token, which the client already got.
    return this.#outcome === 'touched';
  }

  send(): Promise<TouchOutcome | 'failed'> | undefined {
    this.#sent ??= this.#touch?.().then((outcome) => (this.#outcome = outcome));
    return this.#sent;
  }

  /** The same, unless the cookie is sent again: that waits for the headers, as the handler may rotate the token. */
  sendEarly(): void {
    if (!this.isRolling) void this.send();
  }

  /** The request does not count as an access. */
  cancel(): void {
    if (!this.isNeeded) this.#touch = undefined;
  }
}

function reportFailure(repository: SessionRepository, session: TrackedSession, error: unknown): void {
  const reasons = failures.get(repository) ?? new FailureReasons();
  failures.set(repository, reasons);
  if (!reasons.add(error)) return;
  const reason = error instanceof SessionStoreError ? JSON.stringify(error.reason) : shownError(error);
  logger.warn(`The idle timeout of session ${session.shownId} was not renewed: ${reason}`);
}

export function cookieLifetimeOf(session: TrackedSession | undefined): Pick<SessionClient, 'isRemembered' | 'maxAge'> {
  const maxAge = session?.peekAttribute(COOKIE_MAX_AGE_ATTRIBUTE);
  return {
    isRemembered: session?.peekAttribute(REMEMBER_ME_ATTRIBUTE) === true,
    maxAge: isLifetime(maxAge) ? Math.min(maxAge, LONGEST_COOKIE / 1000) : undefined,
  };
}

/** Whether the token of a client has a lifetime: the client gets it again whenever its session is renewed. */
export function isRolling(resolver: Pick<SessionIdResolver, 'maxAge'>, client: SessionClient): boolean {
  return resolver.maxAge(client) !== undefined;
}

/** Whether such a client gets it again although its session never expires and is not renewed. */
export function isCookieDue({ lastAccessedTime }: TrackedSession, touchInterval: number): boolean {
  // It decides nothing else, so any clock will do.
  return Date.now() - lastAccessedTime >= touchInterval;
}

function isLifetime(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
