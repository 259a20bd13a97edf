import { isGuessableKey } from '../option-reading/guessable-key.js';
import type { SecurityLevel } from '../option-reading/security-level.js';
import { strictCookieProblems } from '../option-reading/strict-security.js';

// By RFC 6265bis, 4.1.1, the name of a cookie is a token of RFC 9110; path and domain have no control character and no
// ";".
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const PATH = /^\/[\x20-\x3a\x3c-\x7e]*$/;
const LABEL = '[0-9a-z](?:[0-9a-z-]{0,61}[0-9a-z])?';
const DOMAIN = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`, 'i');

// Browsers drop longer cookies and longer attributes (RFC 6265bis, 5.6).
const LONGEST_COOKIE = 4096;
const LONGEST_ATTRIBUTE = 1024;
/** The longest value that is sent: a token of 128 characters with its signature. */
export const LONGEST_VALUE = 256;
// RFC 1035, 2.3.4
const LONGEST_HOST = 253;

export function nameProblem(name: string): string | undefined {
  if (!TOKEN.test(name)) return 'is not a cookie name (a token of RFC 9110): use letters, digits, "-" and "_"';
  const longest = LONGEST_COOKIE - LONGEST_VALUE;
  return name.length > longest ? `is too long for browsers: use at most ${longest} characters` : undefined;
}

export function pathProblem(path: string): string | undefined {
  if (!PATH.test(path)) return 'must begin with "/" and hold no ";" and nothing but visible ASCII';
  return path.length > LONGEST_ATTRIBUTE
    ? `is too long for browsers: use at most ${LONGEST_ATTRIBUTE} characters`
    : undefined;
}

export function domainProblem(domain: string): string | undefined {
  return isHostName(domain)
    ? undefined
    : "is not a host name: write it without scheme, port and leading dot, such as 'example.org'";
}

export function isHostName(host: string): boolean {
  return host.length <= LONGEST_HOST && DOMAIN.test(host);
}

const SHORTEST_KEY = 32;

/** Names the position of a bad key and the reason, never the key. */
export function* signingKeyProblems(keys: readonly string[]): Iterable<string> {
  const instead = `draw ${SHORTEST_KEY} random bytes, as \`openssl rand -base64 ${SHORTEST_KEY}\` does.`;
  for (const [position, key] of keys.entries()) {
    const name = `Option \`cookie.signingKeys[${position}]\``;
    if (Buffer.byteLength(key) < SHORTEST_KEY) yield `${name} is too short: ${instead}`;
    else if (isGuessableKey(key)) yield `${name} can be guessed: ${instead}`;
    else if (keys.indexOf(key) < position) yield `${name} repeats an earlier key: remove it.`;
  }
}

/** The attributes of a cookie that browsers check together. */
export interface CookiePolicy {
  /** The name of the cookie. */
  readonly name: string;
  /** The browser sends the cookie to this path and the paths below it. */
  readonly path: string;
  /** The domain whose hosts share the cookie; of a list, the first that contains the host of a request. */
  readonly domain: string | readonly string[] | undefined;
  /** Whether the cookie is hidden from scripts. */
  readonly httpOnly: boolean;
  /** Whether the cookie is sent over https only. `'auto'` means that it is if the request came over https. */
  readonly secure: boolean | 'auto';
  /** Whether requests from other sites carry the cookie. `false` lets the browser decide. */
  readonly sameSite: 'lax' | 'strict' | 'none' | false;
  /** Whether every site that embeds the application has a cookie of its own. */
  readonly partitioned: boolean;
  /** The level `'strict'` refuses what ASVS forbids. */
  readonly security: SecurityLevel;
}

/** What browsers hold a cookie to by its name. */
export const PREFIX = /^__(host-http|host|http|secure)-/i;

// These rules come from RFC 6265bis, 4.1.2.7 (SameSite) and 4.1.3 (name prefixes, which browsers compare without regard
// to case). The rules for Partitioned and for the prefixes with Http come from the drafts that Chromium follows.
export function* policyProblems(given: CookiePolicy): Iterable<string> {
  const isStrict = given.security === 'strict';
  const prefix = PREFIX.exec(given.name)?.[1]?.toLowerCase();
  if (isStrict) yield* strictCookieProblems(given, prefix);
  // strictCookieProblems() has reported `secure` already.
  const cookie = isStrict ? { ...given, secure: true } : given;
  const named = `A cookie named ${cookie.name}`;
  const isOfHost = prefix?.startsWith('host');
  if (prefix !== undefined && cookie.secure !== true) yield `${named} needs \`cookie.secure\` true.`;
  if (prefix?.endsWith('http') && !cookie.httpOnly) yield `${named} needs \`cookie.httpOnly\` true.`;
  if (isOfHost && cookie.domain !== undefined) yield `${named} takes no \`cookie.domain\`.`;
  if (isOfHost && cookie.path !== '/') yield `${named} needs \`cookie.path\` "/".`;
  if (cookie.sameSite === 'none' && cookie.secure !== true) {
    yield "`cookie.sameSite` 'none' needs `cookie.secure` true.";
  }
  if (cookie.partitioned && cookie.secure !== true) yield '`cookie.partitioned` needs `cookie.secure` true.';
}
