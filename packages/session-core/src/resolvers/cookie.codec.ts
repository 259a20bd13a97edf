import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { type SessionToken, sessionTokenOf } from '../session/session-token.js';
import type { ResolvedCookieOptions } from './cookie.options.js';
import { LONGEST_VALUE } from './cookie.validation.js';
import type { TokenRefusal } from './session-id.resolver.js';

// In no token and no signature.
const SEPARATOR = '.';
// 32 bytes as base64url.
const SIGNATURE_LENGTH = 43;

/** Writes a token as the value of a cookie, and reads it back. */
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
    // Compared as text, because Node.js would decode many texts to the same bytes.
    const presented = Buffer.from(signature);
    // First, because the HMACs are what a request with many cookies costs.
    if (presented.length !== SIGNATURE_LENGTH) return false;
    return this.#keys.some((key) => timingSafeEqual(presented, Buffer.from(this.#sign(token, key))));
  }

  /** Signs for this cookie only: a signature that the same key made for another purpose must not count here. */
  #sign(token: string, key: KeyObject): string {
    return createHmac('sha256', key).update(`nest-session cookie ${this.#name}=${token}`).digest('base64url');
  }
}
