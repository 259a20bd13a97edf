import { type SessionKey, sessionKeyOf, type SessionToken } from '../session/session-key.js';
import type { ResolvedCookieOptions } from './cookie.options.js';

/** How a token is written as the value of a cookie. */
export class CookieCodec {
  readonly #cookie: Pick<ResolvedCookieOptions, 'base64'>;

  constructor(cookie: Pick<ResolvedCookieOptions, 'base64'>) {
    this.#cookie = cookie;
  }

  encode(token: SessionToken): string {
    const value = token.reveal();
    return this.#cookie.base64 ? Buffer.from(value).toString('base64') : value;
  }

  /** The key of a value that a client presented; undefined when it cannot be one that was encoded here. */
  decode(value: string): SessionKey | undefined {
    return sessionKeyOf(this.#cookie.base64 ? decodeBase64(value) : value);
  }
}

/** Undefined for what no encoder writes: of the many texts that Node.js would read as the same, one counts. */
function decodeBase64(value: string): string | undefined {
  const bytes = Buffer.from(value, 'base64');
  return bytes.toString('base64') === value ? bytes.toString('latin1') : undefined;
}
