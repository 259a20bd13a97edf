import type { IncomingMessage } from 'node:http';
import { isSecure } from '../resolvers/request-origin.js';

/** What Express and Fastify add: the host with its port, trusted proxies taken into account. */
interface WithHost {
  readonly host?: unknown;
}

/**
 * Whether the browser says that a page of another origin sent the request. A client that says nothing is not a browser
 * of today.
 * @param platform the request of the platform, which may be the one of Node.js
 */
export function isFromOtherOrigin(
  request: IncomingMessage,
  platform: WithHost,
  trustedOrigins: ReadonlySet<string>,
): boolean {
  const { origin, host, 'sec-fetch-site': site } = request.headers;
  if (origin !== undefined && trustedOrigins.has(origin)) return false;
  // `none`: the user typed the address. `same-site` is another host of the domain, which is not this application.
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  if (origin === undefined) return false;
  // Also `null`, which sandboxed frames of other pages have.
  if (!URL.canParse(origin)) return true;
  const page = new URL(origin);
  // A page that came over http may have been changed on its way.
  if (page.protocol !== 'https:' && isSecure(request)) return true;
  const own = [host, request.headers[':authority'], platform.host];
  return !own.some((each) => isHostOf(page, each));
}

/** Whether a Host header names the host and the port of a page. It leaves the usual port of the scheme out. */
function isHostOf(page: URL, host: unknown): boolean {
  if (typeof host !== 'string' || !URL.canParse(`${page.protocol}//${host}`)) return false;
  return new URL(`${page.protocol}//${host}`).host === page.host;
}
