/** `'standard'` allows plain http on a development machine. `'strict'` refuses at start what OWASP ASVS 5.0 forbids. */
export type SecurityLevel = 'standard' | 'strict';

// What `security: 'strict'` refuses, and what a library can see of it. The requirement behind each rule is one of ASVS.

const STRICT = "with `security: 'strict'`";

const HOUR = 3_600_000;

// In all, what NIST SP 800-63B-4 allows at AAL2; at AAL1, which is for users who asked to be remembered. Without use, a
// working day: NIST recommends an hour at AAL2, and leaves room for reasons.
const LONGEST_IDLE = { is: 12 * HOUR, shown: '12h' };
const LONGEST = { is: 24 * HOUR, shown: '24h' };
const LONGEST_REMEMBERED = { is: 30 * 24 * HOUR, shown: '30d' };

/** Every session has to end by itself, and soon. In milliseconds, but for `rememberMe`: seconds. */
export function* strictTimeoutProblems(
  timeouts: Readonly<Record<'timeout' | 'anonymousTimeout' | 'absoluteTimeout', number>>,
  rememberMe: number | undefined,
): Iterable<string> {
  const whole = rememberMe === undefined ? LONGEST : LONGEST_REMEMBERED;
  const longest = { timeout: LONGEST_IDLE, anonymousTimeout: LONGEST_IDLE, absoluteTimeout: whole } as const;
  for (const name of ['timeout', 'anonymousTimeout', 'absoluteTimeout'] as const) {
    if (timeouts[name] === Infinity) yield `Option \`${name}\` must not be 'never' ${STRICT}.`;
    else if (timeouts[name] > longest[name].is)
      yield `Option \`${name}\` must be at most '${longest[name].shown}' ${STRICT}.`;
  }
  if ((rememberMe ?? 0) * 1000 > LONGEST_REMEMBERED.is)
    yield `Option \`cookie.rememberMe\` must be at most '${LONGEST_REMEMBERED.shown}' ${STRICT}.`;
}

export function strictAbsoluteTimeout(rememberMe: number | undefined): number {
  return (rememberMe === undefined ? LONGEST : LONGEST_REMEMBERED).is / 1000;
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

interface StrictCookie {
  readonly secure: boolean | 'auto';
  readonly httpOnly: boolean;
  readonly sameSite: string | false;
  readonly domain: unknown;
}

/** OWASP ASVS 5.0, V3.3. `prefix`: that of the name without underscores, in lower case. */
export function* strictCookieProblems(cookie: StrictCookie, prefix: string | undefined): Iterable<string> {
  if (cookie.secure !== true) {
    yield `\`cookie.secure\` must be true ${STRICT}: to develop over http, use \`security: 'standard'\` there.`;
  }
  if (!cookie.httpOnly) yield `\`cookie.httpOnly\` must be true ${STRICT}: otherwise scripts can read the token.`;
  if (cookie.sameSite === false) yield `\`cookie.sameSite\` must be 'lax', 'strict' or 'none' ${STRICT}.`;
  for (const domain of [cookie.domain ?? []].flat() as string[]) {
    if (!domain.includes('.')) yield `\`cookie.domain\` must not be ${JSON.stringify(domain)} ${STRICT}: ${SUFFIX}.`;
  }
  const isShared = cookie.domain !== undefined;
  if (prefix?.startsWith('host') || (isShared && prefix !== undefined)) return;
  yield isShared
    ? `\`cookie.name\` must begin with "__Secure-" or "__Host-" ${STRICT}.`
    : `\`cookie.name\` must begin with "__Host-" ${STRICT}: otherwise other hosts can set the cookie.`;
}

const SUFFIX = 'many sites may share such a domain';

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
