import type { IncomingMessage, ServerResponse } from 'node:http';
import { stringifySetCookie } from 'cookie';
import { OptionReader } from '../option-reading/option.reader.js';
import type { SecurityLevel } from '../option-reading/security-level.js';
import type { SessionToken } from '../session/session-token.js';
import { attributesForRequest, type SetCookieAttributes } from './attributes-for-request.js';
import { CookieCodec, cookieValues, MOST_VALUES } from './cookie.codec.js';
import { CookieWarnings } from './cookie.warnings.js';
import { type CookieOptions, readCookieOptions, type ResolvedCookieOptions } from './cookie.options.js';
import { PREFIX } from './cookie.validation.js';
import { appendHeader } from './response-headers.js';
import {
  type SessionClient,
  SessionIdResolver,
  type TokenRefusal,
  type TokenRefusalListener,
} from './session-id.resolver.js';

// Tokens and signatures need no encoding.
const AS_IT_IS = { encode: (value: string) => value };

/** Carries the token in a cookie. It leaves the other cookies of the response unchanged. */
export class CookieSessionIdResolver extends SessionIdResolver {
  readonly headers = ['Cookie'];
  readonly #cookie: ResolvedCookieOptions;
  readonly #codec: CookieCodec;
  readonly #diagnosis: CookieWarnings;

  /**
   * Keeps the token in the cookie that the options describe. If you set `security: 'strict'` on `SessionModule`, pass
   * `'strict'` here as well.
   * @throws InvalidSessionOptionsError that names all problems at once
   */
  constructor(options?: CookieOptions, security: SecurityLevel = 'standard') {
    super();
    const reader = new OptionReader('CookieSessionIdResolver', { cookie: options });
    this.#cookie = readCookieOptions(reader.section('cookie'), security);
    reader.finish();
    this.#codec = new CookieCodec(this.#cookie);
    this.#diagnosis = new CookieWarnings(this.#cookie.name);
  }

  /** The name of the cookie. */
  get name(): string {
    return this.#cookie.name;
  }

  resolve(request: IncomingMessage, onRefused?: TokenRefusalListener): SessionToken[] {
    const tokens: SessionToken[] = [];
    // Cookies of other paths and domains have the same name, and may come first.
    const values = cookieValues(request.headers.cookie, this.#cookie.name, MOST_VALUES + 1);
    if (values.length > MOST_VALUES) this.#diagnosis.ofTooMany(MOST_VALUES);
    for (const value of values.slice(0, MOST_VALUES)) {
      const token = this.#codec.decode(value);
      if (typeof token === 'string') this.#refuse(request, value, token, onRefused);
      else if (!tokens.some((known) => known.reveal() === token.reveal())) tokens.push(token);
    }
    return tokens;
  }

  send(request: IncomingMessage, response: ServerResponse, token: SessionToken, client: SessionClient): void {
    this.#diagnosis.ofSent(request, this.#cookie);
    this.#setCookie(response, this.cookieFor(request), this.#codec.encode(token), this.maxAge(client));
  }

  expire(request: IncomingMessage, response: ServerResponse): void {
    this.#setCookie(response, this.cookieFor(request), '', 0);
  }

  override cookieFor(request: IncomingMessage): SetCookieAttributes {
    return attributesForRequest(request, this.#cookie);
  }

  /** @internal Of this host alone, also where hosts share the token. No other host can plant one with the prefix. */
  override visitorCookie(request: IncomingMessage): { readonly name: string } & SetCookieAttributes {
    const { domain: _, ...attributes } = this.cookieFor(request);
    const { secure, path } = this.#cookie;
    const prefix = secure === true && path === '/' ? '__Host-' : '';
    return { ...attributes, name: `${prefix}${this.name.replace(PREFIX, '')}.csrf`, httpOnly: true };
  }

  override meets(security: SecurityLevel): boolean {
    return security === 'standard' || this.#cookie.security === 'strict';
  }

  override maxAge({ isRemembered, maxAge: own }: SessionClient): number | undefined {
    if (own !== undefined) return own === 0 ? undefined : own;
    const { maxAge, rememberMe = maxAge } = this.#cookie;
    return isRemembered ? rememberMe : maxAge;
  }

  #refuse(
    request: IncomingMessage,
    value: string,
    refusal: TokenRefusal,
    onRefused: TokenRefusalListener | undefined,
  ): void {
    // Some clients keep an expired cookie with an empty value.
    if (value !== '' && !onRefused?.(request, refusal)) this.#diagnosis.ofRefused(refusal);
  }

  #setCookie(response: ServerResponse, attributes: SetCookieAttributes, value: string, maxAge?: number): void {
    const cookie = { name: this.name, value, ...attributes, ...(maxAge !== undefined && { maxAge }) };
    appendHeader(response, 'Set-Cookie', stringifySetCookie(cookie, AS_IT_IS));
  }
}
