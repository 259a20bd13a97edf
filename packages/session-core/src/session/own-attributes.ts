import { SessionAttributeError } from '../errors/session.errors.js';
import { PRINCIPAL_NAME_INDEX_NAME } from './session.js';

/**
 * What the names of attributes begin with that are bound to the visitor: no sign-in keeps them, because whoever planted
 * the session of before could know or choose their values.
 */
export const VISITOR_PREFIX = 'nest-session.visitor.';

/** The attribute with the id of the session for which the CSRF token was drawn, a colon and the token. */
export const CSRF_ATTRIBUTE = `${VISITOR_PREFIX}csrf`;

/** The attribute of a session whose cookie outlives the browser. */
export const REMEMBER_ME_ATTRIBUTE = 'nest-session.rememberMe';

/** The attribute of a session whose cookie has a lifetime of its own: seconds, 0 until the browser is closed. */
export const COOKIE_MAX_AGE_ATTRIBUTE = 'nest-session.cookieMaxAge';

/** The attribute of a session that is stored although the application set none, as express-session can. */
export const INITIALIZED_ATTRIBUTE = 'nest-session.initialized';

/** By the name of each attribute that the library sets by itself, what an application calls instead. */
const OWN: ReadonlyMap<string, string> = new Map([
  [
    PRINCIPAL_NAME_INDEX_NAME,
    'is the principal: call session.signIn(name) or session.signOut(), or assign session.principalName',
  ],
  [CSRF_ATTRIBUTE, 'is the CSRF token: call csrfTokenOf(session)'],
  [REMEMBER_ME_ATTRIBUTE, 'is set by remember-me: call session.signIn(name, { remember: true })'],
  [COOKIE_MAX_AGE_ATTRIBUTE, 'is the lifetime of the cookie: assign req.session.cookie.maxAge'],
  [INITIALIZED_ATTRIBUTE, 'belongs to @nest-session/express-session: set its option saveUninitialized'],
]);

/** Whether the library sets an attribute by itself. Its prefix says less: applications may choose names with it, too. */
export function isOwnAttribute(name: string): boolean {
  return OWN.has(name);
}

/**
 * The library's own attributes count toward no bound, and clients may choose names of attributes. All but the principal can
 * be removed: what comes with a sign-in must not be forgotten.
 *
 * @throws SessionAttributeError for an attribute that an application may not set to this value
 */
export function assertFree(name: string, value: unknown): void {
  const instead = OWN.get(name);
  if (instead === undefined) return;
  const isRemoved = value === undefined || value === null;
  if (!isRemoved || name === PRINCIPAL_NAME_INDEX_NAME) throw new SessionAttributeError(name, instead);
}

/** The attributes that say how long the client keeps its token: each sign-in decides that anew. */
export const LIFETIME_ATTRIBUTES: readonly string[] = [REMEMBER_ME_ATTRIBUTE, COOKIE_MAX_AGE_ATTRIBUTE];
