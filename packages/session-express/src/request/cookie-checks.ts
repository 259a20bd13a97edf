import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SessionIdResolver } from '@nest-session/core';
import { attributesForRequest, type TrackedSession } from '@nest-session/core/internal';
import { logger, warnOnce } from '../express-session.logger.js';

/** Limits the session as express-session does: to the path of its cookie, and to https if the cookie is Secure. */
export class CookieCheck {
  #hasWarned = false;
  #isFirst = true;

  constructor(private readonly resolver: SessionIdResolver) {}

  excludes(request: IncomingMessage): boolean {
    const path = this.resolver.cookieFor(request)?.path ?? '/';
    const isOutside = path !== '/' && !isBelow(targetPathOf(request), path);
    if (isOutside && this.#isFirst) {
      logger.warn(
        `The first request was outside of the path ${JSON.stringify(path)} of the session cookie, so it had no ` +
          'req.session. If a proxy strips this prefix, no request ever has one: remove `cookie.path` in ' +
          'SessionModule.forRoot()',
      );
    }
    this.#isFirst = false;
    return isOutside;
  }

  withholds(request: IncomingMessage): boolean {
    const cookie = this.resolver.cookieFor(request);
    if (cookie?.secure !== true || isSecure(request)) return false;
    if (!this.#hasWarned) logger.warn(NOT_SENT);
    this.#hasWarned = true;
    return true;
  }
}

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

/** Looks for responses that remove the old cookie and leave the session: they used to sign the user out. */
export function clearedCookieCheck(name: string): (session: TrackedSession | undefined, to: ServerResponse) => void {
  const cleared = `${name}=;`;
  return (session, response) => {
    if (!session || !livesOn(session)) return;
    const cookies = response.getHeader('set-cookie');
    if (cookies === undefined || ![cookies].flat().some((each) => String(each).startsWith(cleared))) return;
    warnOnce(
      `A response removed the cookie ${JSON.stringify(name)} of express-session, and the session goes on, because ` +
        'its cookie is another one now. If this is to sign the user out, call req.session.destroy() instead. This is ' +
        'logged once',
    );
  };
}

/** Whether the response leaves a stored session as it is: neither ended, nor with another id, as a logout gives it. */
function livesOn(session: TrackedSession): boolean {
  const isStored = session.storedId !== undefined && !session.isOver && !session.isGone;
  return isStored && session.tokenToSend === undefined && session.attributeNames.length > 0;
}
