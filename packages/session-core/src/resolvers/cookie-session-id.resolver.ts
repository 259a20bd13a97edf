import type { IncomingMessage, ServerResponse } from 'node:http';
import { stringifySetCookie } from 'cookie';
import { OptionReader } from '../option-reading/option.reader.js';
import type { SessionToken } from '../session/session-token.js';
import { cookieAttributes } from './cookie-attributes.js';
import { CookieCodec } from './cookie.codec.js';
import { CookieWarnings } from './cookie.warnings.js';
import {
  type CookieOptions,
  overrideAttributes,
  readCookieOptions,
  type ResolvedCookieAttributes,
  type ResolvedCookieOptions,
} from './cookie.options.js';
import { appendHeader } from './response-headers.js';
import { type SessionClient, SessionIdResolver } from './session-id.resolver.js';

// Values need no encoding. It would change the "=" at the end of base64, which other languages do not decode.
const AS_IT_IS = { encode: (value: string) => value };

// Cookies of other paths and domains look the same and may come first. The limit bounds the look-ups.
const MOST_TOKENS = 5;

/** Carries the token in a cookie. Other cookies of the response are not changed. */
export class CookieSessionIdResolver extends SessionIdResolver {
  readonly headers = ['Cookie'];
  readonly #cookie: ResolvedCookieOptions;
  readonly #codec: CookieCodec;
  readonly #diagnosis: CookieWarnings;

  /**
   * Keeps the token in the cookie that the options describe.
   * @throws InvalidSessionOptionsError naming all problems at once
   */
  constructor(options?: CookieOptions) {
    super();
    const reader = new OptionReader('CookieSessionIdResolver', { cookie: options });
    this.#cookie = readCookieOptions(reader.section('cookie'));
    reader.finish();
    this.#codec = new CookieCodec(this.#cookie);
    this.#diagnosis = new CookieWarnings(this.#cookie.name);
  }

  resolve(request: IncomingMessage): SessionToken[] {
    const tokens: SessionToken[] = [];
    for (const value of cookieValues(request.headers.cookie, this.#cookie.name)) {
      const token = this.#codec.decode(value);
      if (typeof token === 'string') this.#diagnosis.ofRefused(value, token);
      else if (!tokens.some((known) => known.reveal() === token.reveal())) tokens.push(token);
      if (tokens.length === MOST_TOKENS) break;
    }
    return tokens;
  }

  send(request: IncomingMessage, response: ServerResponse, token: SessionToken, client: SessionClient): void {
    const attributes = this.#attributesFor(request);
    this.#diagnosis.ofSent(request, attributes);
    this.#setCookie(request, response, {
      ...attributes,
      value: this.#codec.encode(token),
      maxAge: this.maxAge(client),
    });
  }

  expire(request: IncomingMessage, response: ServerResponse): void {
    this.#setCookie(request, response, { ...this.#attributesFor(request), value: '', maxAge: 0 });
  }

  override maxAge({ isRemembered, maxAge: own }: SessionClient): number | undefined {
    if (own !== undefined) return own === 0 ? undefined : own;
    const { maxAge, rememberMe = maxAge } = this.#cookie;
    return isRemembered ? rememberMe : maxAge;
  }

  #setCookie(
    request: IncomingMessage,
    response: ServerResponse,
    sent: ResolvedCookieAttributes & { readonly value: string; readonly maxAge: number | undefined },
  ): void {
    const { value, maxAge } = sent;
    const cookie = { name: this.#cookie.name, value, ...cookieAttributes(request, sent) };
    const lifetime = maxAge === undefined ? {} : { maxAge };
    appendHeader(response, 'Set-Cookie', stringifySetCookie({ ...cookie, ...lifetime }, AS_IT_IS));
  }

  #attributesFor(request: IncomingMessage): ResolvedCookieAttributes {
    try {
      const others = this.#cookie.attributes?.(request);
      // JavaScript may return a promise. Its rejection, if unhandled, would end the process.
      if (others instanceof Promise) {
        others.catch(() => undefined);
        throw new TypeError('it returned a promise, which no response waits for: return the attributes themselves');
      }
      return others === undefined ? this.#cookie : overrideAttributes(this.#cookie, others);
    } catch (error) {
      // The session is already stored. With the configured attributes, the client at least gets its cookie.
      this.#diagnosis.ofAttributes(error);
      return this.#cookie;
    }
  }
}

/** The values of all cookies with a name, not decoded: a token has no character that would be encoded. */
function cookieValues(header: string | undefined, name: string): string[] {
  const values: string[] = [];
  if (!header?.includes(name)) return values;
  for (const pair of header.split(';')) {
    const separator = pair.indexOf('=');
    if (separator >= 0 && withoutBlanks(pair.slice(0, separator)) === name) {
      values.push(withoutBlanks(pair.slice(separator + 1)));
    }
  }
  return values;
}

/**
 * RFC 6265bis, 5.6: spaces and tabs only. `trim()` would also remove a no-break space, but to a browser a name with one
 * does not begin with `__Host-`, so that other hosts of the domain could set such a cookie.
 */
function withoutBlanks(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && isBlank(text[start])) start++;
  while (end > start && isBlank(text[end - 1])) end--;
  return text.slice(start, end);
}

function isBlank(character: string | undefined): boolean {
  return character === ' ' || character === '\t';
}
