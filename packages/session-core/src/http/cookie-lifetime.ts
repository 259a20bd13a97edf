import { LONGEST_COOKIE } from '../resolvers/cookie.options.js';
import type { SessionClient, SessionIdResolver } from '../resolvers/session-id.resolver.js';
import { COOKIE_MAX_AGE_ATTRIBUTE, REMEMBER_ME_ATTRIBUTE } from '../session/attribute-names.js';
import type { TrackedSession } from '../session/tracked-session.js';

/** How long the client of a session keeps its token. */
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
