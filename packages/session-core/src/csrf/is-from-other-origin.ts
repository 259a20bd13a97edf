import type { IncomingMessage } from 'node:http';
import { isOriginOf } from '../resolvers/proxied-request.js';

/** Express and Fastify add the host with its port, and take trusted proxies into account. */
interface WithHost {
  readonly host?: unknown;
}

/**
 * Whether the browser says that a page of another origin sent the request. A client that says nothing is not a current
 * browser.
 * @param platform the request of the platform, which may be the Node.js request
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
  return !isOriginOf(origin, request, [host, request.headers[':authority'], platform.host]);
}
