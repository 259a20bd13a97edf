import type { IncomingMessage } from 'node:http';
import type { SessionIdResolver } from '@nest-session/core';
import { attributesForRequest, OneLineLogger } from '@nest-session/core/internal';

/** Limits the session as express-session does: to the path of its cookie, and to https if the cookie is Secure. */
export class CookieCheck {
  #hasWarned = false;

  constructor(private readonly resolver: SessionIdResolver) {}

  /** Whether a request has no session because the browser would not send the cookie to its path. */
  excludes(request: IncomingMessage): boolean {
    const path = this.resolver.cookieFor(request)?.path ?? '/';
    return path !== '/' && !isBelow(targetPathOf(request), path);
  }

  /** Whether a request gets no token because the token would be sent over http. Logs it once. */
  withholds(request: IncomingMessage): boolean {
    const cookie = this.resolver.cookieFor(request);
    if (cookie?.secure !== true || isSecure(request)) return false;
    if (!this.#hasWarned) logger.warn(NOT_SENT);
    this.#hasWarned = true;
    return true;
  }
}

const logger = new OneLineLogger('ExpressSession');

const NOT_SENT =
  'The session cookie was not sent, so the client has no session: it is Secure, and the request came over http. ' +
  'Serve the application over https. Behind a proxy that ends TLS, name its address: ' +
  "app.set('trust proxy', ...) on Express, new FastifyAdapter({ trustProxy: ... }) on Fastify. To develop over http, " +
  "set `cookie.secure` of SessionModule to 'auto'";

/** Whether a request came over https, as `auto` decides it. Takes trusted proxies into account. */
function isSecure(request: IncomingMessage): boolean {
  return attributesForRequest(request, ASKING).secure;
}

const ASKING = {
  path: '/',
  domain: undefined,
  httpOnly: true,
  secure: 'auto',
  sameSite: false,
  partitioned: false,
} as const;

/** The path of the request target before routers changed it, without a host. */
function targetPathOf(request: IncomingMessage & { readonly originalUrl?: string }): string {
  const [target = ''] = (request.originalUrl ?? request.url ?? '').split(/[?#]/, 1);
  return target.replace(/^[a-z][a-z\d+.-]*:\/\/[^/]*/i, '') || '/';
}

/** Whether a cookie path matches a request path, by RFC 6265, 5.1.4. */
function isBelow(path: string, cookiePath: string): boolean {
  if (!path.startsWith(cookiePath)) return false;
  return path.length === cookiePath.length || cookiePath.endsWith('/') || path[cookiePath.length] === '/';
}
