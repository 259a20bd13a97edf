import type { SessionClient } from '../resolvers/session-id.resolver.js';
import type { TrackedSession } from '../session/tracked-session.js';
import { REMEMBER_ME_ATTRIBUTE } from './remember-me.js';

/** The attribute of a session whose cookie has a lifetime of its own: seconds, 0 until the browser is closed. */
export const COOKIE_MAX_AGE_ATTRIBUTE = 'nest-session.cookieMaxAge';

/** How long the client of a session keeps its token. */
export function lifetimeOf(session: TrackedSession | undefined): Pick<SessionClient, 'isRemembered' | 'maxAge'> {
  const maxAge = session?.peekAttribute(COOKIE_MAX_AGE_ATTRIBUTE);
  return {
    isRemembered: session?.peekAttribute(REMEMBER_ME_ATTRIBUTE) === true,
    maxAge: typeof maxAge === 'number' ? maxAge : undefined,
  };
}
