import type { IncomingMessage, ServerResponse } from 'node:http';
import { Logger } from '@nestjs/common';
import { stringifySetCookie } from 'cookie';
import { type SessionKey, sessionKeyOf, type SessionToken } from '../session/session-key.js';
import type { ResolvedCookieOptions } from './cookie.options.js';
import { appendHeader } from './response.headers.js';
import { SessionIdResolver } from './session-id.resolver.js';

/** Keeps the token in a cookie. Other cookies of the response stay as they are. */
export class CookieSessionIdResolver extends SessionIdResolver {
  readonly header = 'Cookie';
  readonly #logger = new Logger('Session');
  readonly #cookie: ResolvedCookieOptions;
  #hasWarned = false;

  constructor(cookie: ResolvedCookieOptions) {
    super();
    this.#cookie = cookie;
  }

  /**
   * Of several cookies of the name the first well-formed one counts: those of other paths and domains have no mark, and
   * any of them may be a leftover.
   */
  resolve(request: IncomingMessage): SessionKey | undefined {
    for (const value of cookieValues(request.headers.cookie ?? '', this.#cookie.name)) {
      const key = sessionKeyOf(value);
      if (key) return key;
    }
    return undefined;
  }

  send(request: IncomingMessage, response: ServerResponse, token: SessionToken): void {
    const secure = this.#isSecure(request);
    if (!secure) this.#warnOfUntrustedProxy(request);
    this.#setCookie(response, secure, token.reveal());
  }

  expire(request: IncomingMessage, response: ServerResponse): void {
    this.#setCookie(response, this.#isSecure(request), '', 0);
  }

  #setCookie(response: ServerResponse, secure: boolean, value: string, maxAge?: number): void {
    const { name, path, domain, httpOnly, sameSite } = this.#cookie;
    const attributes = { path, httpOnly, secure, sameSite, ...(domain !== undefined && { domain }) };
    const cookie = { name, value, ...attributes, ...(maxAge !== undefined && { maxAge }) };
    appendHeader(response, 'Set-Cookie', stringifySetCookie(cookie));
  }

  #isSecure(request: IncomingMessage & { protocol?: string }): boolean {
    if (this.#cookie.secure !== 'auto') return this.#cookie.secure;
    // Express and Fastify know of trusted proxies.
    if (request.protocol !== undefined) return request.protocol === 'https';
    return 'encrypted' in request.socket && request.socket.encrypted === true;
  }

  #warnOfUntrustedProxy(request: IncomingMessage): void {
    if (this.#hasWarned || this.#cookie.secure !== 'auto') return;
    if (!/^\s*https\b/i.test(String(request.headers['x-forwarded-proto'] ?? ''))) return;
    this.#hasWarned = true;
    this.#logger.warn(
      `The cookie ${this.#cookie.name} is set without Secure: X-Forwarded-Proto says https, but no proxy is trusted, so ` +
        'the request counts as http. Behind a proxy that ends TLS, name its address: ' +
        "app.set('trust proxy', ...) on Express, new FastifyAdapter({ trustProxy: ... }) on Fastify; " +
        'or set `cookie.secure` to true',
    );
  }
}

/** The values of all cookies of a name, undecoded: a token holds nothing that would be encoded. */
function* cookieValues(header: string, name: string): Iterable<string> {
  if (!header.includes(`${name}=`)) return;
  for (const pair of header.split(';')) {
    const separator = pair.indexOf('=');
    if (pair.slice(0, separator).trim() === name) yield pair.slice(separator + 1).trim();
  }
}
