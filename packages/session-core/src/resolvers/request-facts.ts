import type { IncomingMessage } from 'node:http';
import type { RequestFacts } from '../security-events/security-events.js';
import { addressOf } from './proxied-request.js';

// A request line may be as long as all headers together, and a proxy may pass any text on as an address.
const LONGEST_PATH = 256;
const LONGEST_ADDRESS = 64;

/** The facts about a request that a security event may contain. They include no query and no header. */
export function requestFactsOf(request: IncomingMessage): RequestFacts {
  // Routers change `url`, so prefer the original one.
  const { originalUrl = request.url ?? '' } = request as { readonly originalUrl?: string };
  return {
    method: request.method,
    path: pathOf(originalUrl).slice(0, LONGEST_PATH),
    remoteAddress: addressOf(request)?.slice(0, LONGEST_ADDRESS),
  };
}

/** The path of a URL. Removes the host, which may follow a user name and a password. */
function pathOf(url: string): string {
  const [withoutQuery = ''] = url.split(/[?#]/, 1);
  return withoutQuery.replace(/^[a-z][a-z\d+.-]*:\/\/[^/]*/i, '');
}
