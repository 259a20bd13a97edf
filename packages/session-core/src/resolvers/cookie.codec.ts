import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { type SessionToken, sessionTokenOf } from '../session/session-token.js';
import type { ResolvedCookieOptions } from './cookie.options.js';
import { LONGEST_VALUE } from './cookie.validation.js';
import type { TokenRefusal } from './session-id.resolver.js';

// Neither tokens nor signatures contain it.
const SEPARATOR = '.';
// The length of 32 bytes in base64url.
const SIGNATURE_LENGTH = 43;

/** Encodes a token as the value of a cookie, and decodes it. */
export class CookieCodec {
  readonly #name: string;
  readonly #keys: readonly KeyObject[];

  constructor({ name, signingKeys }: Pick<ResolvedCookieOptions, 'name' | 'signingKeys'>) {
    this.#name = name;
    this.#keys = signingKeys;
  }

  encode(token: SessionToken): string {
    const [key] = this.#keys;
    const text = token.reveal();
    return key ? `${text}${SEPARATOR}${this.#sign(text, key)}` : text;
  }

  /** The token in a value that a client presented, or why the value was refused. */
  decode(value: string): SessionToken | TokenRefusal {
    if (value.length > LONGEST_VALUE) return 'malformed';
    if (this.#keys.length === 0) return sessionTokenOf(value) ?? 'malformed';
    const [text = '', ...signature] = value.split(SEPARATOR);
    const token = sessionTokenOf(text);
    if (!token || signature.length > 1) return 'malformed';
    if (signature[0] === undefined) return 'unsigned';
    return this.#isSigned(text, signature[0]) ? token : 'badly signed';
  }

  #isSigned(token: string, signature: string): boolean {
    // Compare texts: Node.js decodes many base64 texts to the same bytes.
    const presented = Buffer.from(signature);
    // Check the length first: a request with many cookies would otherwise cost many HMACs.
    if (presented.length !== SIGNATURE_LENGTH) return false;
    return this.#keys.some((key) => timingSafeEqual(presented, Buffer.from(this.#sign(token, key))));
  }

  /** Signs the name of the cookie, too, so that a signature that the key made for another purpose is not valid here. */
  #sign(token: string, key: KeyObject): string {
    return createHmac('sha256', key).update(`nest-session cookie ${this.#name}=${token}`).digest('base64url');
  }
}

/** How many cookie values of one name a request may have checked. A check may cost one HMAC per signing key. */
export const MOST_VALUES = 64;

/**
 * Returns the values of the cookies with a name, in their order and `most` at most. It does not decode them, because a
 * token has no character that needs encoding, but removes quotes around them (RFC 6265, 4.1.1), which some clients and
 * proxies add. It takes time linear in the length of the header.
 */
export function cookieValues(header: unknown, name: string, most = MOST_VALUES): string[] {
  const values: string[] = [];
  // Mercurius puts what a client sends over a connection among the headers: any JSON.
  if (typeof header !== 'string') return values;
  for (let at = header.indexOf(name); at >= 0 && values.length < most;) {
    let next = at + name.length;
    const separator = afterBlanks(header, next);
    if (header[separator] === '=' && beginsPair(header, at)) {
      const end = header.indexOf(';', separator);
      next = end < 0 ? header.length : end;
      values.push(withoutQuotes(withoutBlanks(header.slice(separator + 1, next))));
    }
    at = header.indexOf(name, next);
  }
  return values;
}

function beginsPair(header: string, at: number): boolean {
  let before = at - 1;
  while (isBlank(header[before])) before--;
  return before < 0 || header[before] === ';';
}

function afterBlanks(text: string, at: number): number {
  let after = at;
  while (isBlank(text[after])) after++;
  return after;
}

/**
 * Removes only spaces and tabs (RFC 6265bis, 5.6). `trim()` would also remove a no-break space. For a browser, a name
 * with a leading no-break space does not begin with `__Host-`, so other hosts of the domain could set such a cookie.
 */
function withoutBlanks(text: string): string {
  const start = afterBlanks(text, 0);
  let end = text.length;
  while (end > start && isBlank(text[end - 1])) end--;
  return text.slice(start, end);
}

function withoutQuotes(text: string): string {
  return text.length > 1 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text;
}

function isBlank(character: string | undefined): boolean {
  return character === ' ' || character === '\t';
}
