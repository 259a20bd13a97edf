import { SessionAttributeError } from '../errors/session.errors.js';
import { assertString } from '../option-reading/assert-argument.js';

/**
 * The prefix of attributes that are bound to the visitor. No sign-in keeps them: an attacker who planted the session
 * before the sign-in could know or choose their values.
 */
export const VISITOR_PREFIX = 'nest-session.visitor.';

export const PRINCIPAL_ATTRIBUTE = 'nest-session.principal';

/** The attribute with the id of the session for which the CSRF token was drawn, a colon and the token. */
export const CSRF_ATTRIBUTE = `${VISITOR_PREFIX}csrf`;

export const REMEMBER_ME_ATTRIBUTE = 'nest-session.rememberMe';

/** The attribute of a session whose cookie has a lifetime of its own: seconds, 0 until the browser is closed. */
export const COOKIE_MAX_AGE_ATTRIBUTE = 'nest-session.cookieMaxAge';

/** The attribute of a session that is stored although the application set none: an option of express-session. */
export const INITIALIZED_ATTRIBUTE = 'nest-session.initialized';

/** The attribute with the browser that the session is bound to; false where it is to be bound to none. */
export const DEVICE_ATTRIBUTE = `${VISITOR_PREFIX}device`;

export const TURN_ATTRIBUTE = `${VISITOR_PREFIX}turn`;

/** The attribute with whom an identity provider has signed in: what a logout that it pushes is found by. */
export const PROVIDER_ATTRIBUTE = 'nest-session.provider';

/** By the name of each attribute that only the library sets: what an application calls instead. */
const OWN: ReadonlyMap<string, string> = new Map([
  [
    PRINCIPAL_ATTRIBUTE,
    'is the principal: call session.signIn(name) or session.signOut(), or assign session.principalName',
  ],
  [CSRF_ATTRIBUTE, 'is the CSRF token: call csrfTokenOf(session)'],
  [REMEMBER_ME_ATTRIBUTE, 'is set by remember-me: call session.signIn(name, { remember: true })'],
  [COOKIE_MAX_AGE_ATTRIBUTE, 'is the lifetime of the cookie: assign req.session.cookie.maxAge'],
  [TURN_ATTRIBUTE, 'is how often the token has changed: set the option rotateEvery of SessionModule'],
  [DEVICE_ATTRIBUTE, 'is the browser that the session is bound to: set the option deviceBound of SessionModule'],
  [PROVIDER_ATTRIBUTE, 'is the login at an identity provider: call session.signIn(name, { provider: claims })'],
  [INITIALIZED_ATTRIBUTE, 'belongs to @nest-session/express-session: set its option saveUninitialized'],
]);

const OF_SPRING =
  'is how Spring knows its user: call signInAs(session, user) of @nest-session/spring, or session.signIn(name)';

/**
 * In which another framework keeps who is signed in. Whichever store it uses, because its sessions may be shared later.
 * They count toward the bounds, and applications may read them.
 */
const IDENTITY: ReadonlyMap<string, string> = new Map([
  ['SPRING_SECURITY_CONTEXT', OF_SPRING],
  ['org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME', OF_SPRING],
]);

/** Whether a session is stored although the application set none of its attributes. */
export function isUninitialized(names: Iterable<string>): boolean {
  return [...names].every((name) => name === INITIALIZED_ATTRIBUTE);
}

/** Whether only the library sets an attribute. The prefix does not tell: applications may choose names with it, too. */
export function isOwnAttribute(name: string): boolean {
  return OWN.has(name);
}

/** What no application may read: no log, event or page of its own must hold a secret of a binding, or a `sid`. */
export const HIDDEN: ReadonlySet<string> = new Set([DEVICE_ATTRIBUTE, TURN_ATTRIBUTE, PROVIDER_ATTRIBUTE]);

export function isIdentityAttribute(name: string): boolean {
  return IDENTITY.has(name);
}

/**
 * Clients may choose names of attributes. Those of the library can be removed, but for the principal and what shows
 * whose the session is. @throws SessionAttributeError for one that an application may not set to this value
 */
export function assertFree(name: string, value: unknown): void {
  const instead = OWN.get(name) ?? IDENTITY.get(name);
  if (instead === undefined) return;
  const isRemoved = value === undefined || value === null;
  const mayBeRemoved = name !== PRINCIPAL_ATTRIBUTE && !HIDDEN.has(name) && !IDENTITY.has(name);
  if (!isRemoved || !mayBeRemoved) throw new SessionAttributeError(name, instead);
}

/** @throws TypeError for a name that stores could not keep */
export function assertName(name: unknown): void {
  if (!isWellFormedName(name)) {
    throw new TypeError('The name of a session attribute is a non-empty string of well-formed Unicode');
  }
}

/** @throws TypeError for a name by which a store could not find the session, or that is the text of a missing value */
export function assertPrincipalName(name: unknown): void {
  assertString('The name of a principal', name);
  if (!isWellFormedName(name)) {
    throw new TypeError('The name of a principal is a non-empty string of well-formed Unicode');
  }
  if (isTextOfNothing(name)) throw new TypeError(`The name of a principal is ${textOfNothing(name)}`);
}

/** What `String()` makes of a value that is not there, or is no text: all users would share it. */
export function isTextOfNothing(text: string): boolean {
  return /^(?:undefined|null|NaN|-?Infinity|\[object [^\]]*\])$/.test(text);
}

export function textOfNothing(text: string): string {
  return `the text ${JSON.stringify(text)}, which a missing value becomes: look for the user before you convert the id to text`;
}

/** @throws TypeError for anything but a boolean: a form sends the text `false`, which counts as true */
export function assertRemember(remember: unknown): void {
  if (typeof remember === 'boolean') return;
  throw new TypeError(
    `Option \`remember\` of signIn() is a boolean, but is of type ${typeof remember}: convert what a client sends, for ` +
      'example with ParseBoolPipe',
  );
}

/** Whether a text has an encoding: half of a surrogate pair has none, so that two texts could become one key. */
export function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

function isWellFormedName(name: unknown): boolean {
  return typeof name === 'string' && name !== '' && isWellFormed(name);
}
