import type { IncomingMessage } from 'node:http';
import type { RequestFacts } from '../security-events/security-event.js';
import { addressOf } from './request-origin.js';

// A request line may be as long as all headers together, and a proxy may pass on any text as an address.
const LONGEST_PATH = 256;
const LONGEST_ADDRESS = 64;

/** What a security event may tell of a request: no query, no header. */
export function requestFactsOf(request: IncomingMessage): RequestFacts {
  // Routers change `url`.
  const { originalUrl = request.url ?? '' } = request as { readonly originalUrl?: string };
  return {
    method: request.method,
    path: pathOf(originalUrl).slice(0, LONGEST_PATH),
    remoteAddress: addressOf(request)?.slice(0, LONGEST_ADDRESS),
  };
}

/** Of a URL with a host, which may have a name and a password before it, the path alone. */
function pathOf(url: string): string {
  const [withoutQuery = ''] = url.split(/[?#]/, 1);
  return withoutQuery.replace(/^[a-z][a-z\d+.-]*:\/\/[^/]*/i, '');
}
