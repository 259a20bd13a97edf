import { LONGEST_COOKIE } from '../resolvers/cookie.options.js';
import type { SessionClient } from '../resolvers/session-id.resolver.js';
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

function isLifetime(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
