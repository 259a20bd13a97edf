import type { SecurityLevel } from './security-level.js';

// What `security: 'strict'` refuses, and what a library can see of it. The requirement behind each rule is one of ASVS.

const STRICT = "with `security: 'strict'`";

/** Every session has to end by itself. */
export function* strictTimeoutProblems(timeouts: Readonly<Record<string, number>>): Iterable<string> {
  for (const [name, timeout] of Object.entries(timeouts)) {
    if (timeout === Infinity) yield `Option \`${name}\` must not be 'never' ${STRICT}.`;
  }
}

/** A session id is not the token, and tokens such as these two have room for enough random bits. */
export function* strictIdProblems(form: 'hashed' | 'plain', drawn: readonly [string, string]): Iterable<string> {
  if (form === 'plain') yield `Option \`sessionIds\` must be 'hashed' ${STRICT}: a plain id is the token.`;
  const bits = mostBitsOf(drawn);
  if (bits < FEWEST_BITS) {
    yield `Option \`sessionTokenGenerator\` draws tokens of at most ${bits} random bits: ${FEWEST_BITS} are needed ${STRICT}.`;
  }
}

/** A resolver that is given as such was made for the same level. */
export function* strictResolverProblems(resolver: { meets(security: SecurityLevel): boolean }): Iterable<string> {
  if (resolver.meets('strict')) return;
  yield `Option \`sessionIdResolver\` has a cookie that is not strict: write \`new CookieSessionIdResolver({ ... }, 'strict')\`.`;
}

/** What the rules of cookies are about. */
interface StrictCookie {
  readonly secure: boolean | 'auto';
  readonly httpOnly: boolean;
  readonly sameSite: string | false;
  readonly domain: unknown;
}

/**
 * Nobody else reads or sets the cookie (OWASP ASVS 5.0, V3.3). `prefix`: that of its name without underscores, in lower
 * case.
 */
export function* strictCookieProblems(cookie: StrictCookie, prefix: string | undefined): Iterable<string> {
  if (cookie.secure !== true) {
    yield `\`cookie.secure\` must be true ${STRICT}: to develop over http, use \`security: 'standard'\` there.`;
  }
  if (!cookie.httpOnly) yield `\`cookie.httpOnly\` must be true ${STRICT}: otherwise scripts can read the token.`;
  if (cookie.sameSite === false) yield `\`cookie.sameSite\` must be 'lax', 'strict' or 'none' ${STRICT}.`;
  const isShared = cookie.domain !== undefined;
  if (prefix?.startsWith('host') || (isShared && prefix !== undefined)) return;
  yield isShared
    ? `\`cookie.name\` must begin with "__Secure-" or "__Host-" ${STRICT}.`
    : `\`cookie.name\` must begin with "__Host-" ${STRICT}: otherwise other hosts can set the cookie.`;
}

// OWASP ASVS 5.0, 7.2.3. By 11.5.1, the 122 random bits of a UUID are too few.
const FEWEST_BITS = 128;
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;
/** Alphabets, and how many characters each has; the first counts to which all characters belong. */
const ALPHABETS: readonly (readonly [RegExp, number])[] = [
  [/^\d+$/, 10],
  [/^(?:[\da-f]+|[\dA-F]+)$/, 16],
  [/^(?:[\da-z]+|[\dA-Z]+)$/, 36],
  [/^[\w-]+$/, 64],
];

/** How many random bits a token can have at most. Of two tokens, because a single one may look poorer by chance. */
function mostBitsOf([one, other]: readonly [string, string]): number {
  if (UUID.test(one)) return 122;
  const [, size] = ALPHABETS.find(([alphabet]) => alphabet.test(one + other)) ?? [one, 64];
  return Math.floor(Math.min(one.length, other.length) * Math.log2(size));
}
