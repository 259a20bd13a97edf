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

const OWN = new Set<string>([
  PRINCIPAL_NAME_INDEX_NAME,
  CSRF_ATTRIBUTE,
  REMEMBER_ME_ATTRIBUTE,
  COOKIE_MAX_AGE_ATTRIBUTE,
  INITIALIZED_ATTRIBUTE,
]);

/** Whether the library sets an attribute by itself. Its prefix says less: applications may choose names with it, too. */
export function isOwnAttribute(name: string): boolean {
  return OWN.has(name);
}

/** The attributes that say how long the client keeps its token: each sign-in decides that anew. */
export const LIFETIME_ATTRIBUTES: readonly string[] = [REMEMBER_ME_ATTRIBUTE, COOKIE_MAX_AGE_ATTRIBUTE];
