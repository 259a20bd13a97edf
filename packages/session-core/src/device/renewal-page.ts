import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { stringifySetCookie } from 'cookie';
import { cookieValues } from '../resolvers/cookie-session-id.resolver.js';
import { appendHeader } from '../resolvers/response-headers.js';
import type { DeviceCookie } from '../resolvers/session-id.resolver.js';

const RELOAD = 'location.reload()';
const HASH = createHash('sha256').update(RELOAD).digest('base64');
/** Seconds within which a browser is not asked to navigate once more. */
const ONCE_IN = 30;

/**
 * Answers a navigation that another site has caused with a page that navigates to the same address again: for such a
 * navigation no browser renews a proof that has expired, but for that of the page it does. False, and nothing is sent,
 * for any other request, and when the browser has just been asked.
 */
export function sendRenewalPage(
  request: IncomingMessage,
  response: ServerResponse,
  { name, attributesFor }: DeviceCookie,
): boolean {
  const { headers, method, url = '/' } = request;
  const site = headers['sec-fetch-site'];
  const destination = headers['sec-fetch-dest'];
  const isNavigation =
    method === 'GET' &&
    headers['sec-fetch-mode'] === 'navigate' &&
    (site === 'cross-site' || site === 'same-site') &&
    // Through a service worker it is empty.
    (destination === 'document' || destination === 'empty') &&
    // What nobody looks at need not be loaded twice.
    headers['sec-purpose'] === undefined;
  const marker = `${name}-asked`;
  const address = ownAddress(url);
  if (!isNavigation || address === undefined || cookieValues(headers.cookie, marker, 1).length > 0) return false;
  const asked = { ...attributesFor(request), name: marker, value: '1', maxAge: ONCE_IN };
  appendHeader(response, 'Set-Cookie', stringifySetCookie(asked));
  response
    .writeHead(200, {
      'Content-Type': 'text/html; charset=utf-8',
      'Cache-Control': 'no-store',
      'Content-Security-Policy': `default-src 'none'; script-src 'sha256-${HASH}'`,
      'Referrer-Policy': 'no-referrer',
      // Where scripts are off. The script keeps the fragment of the address, which this loses.
      Refresh: `1;url=${address}`,
    })
    .end(`<!doctype html><meta charset="utf-8"><title>...</title><script>${RELOAD}</script>`);
  return true;
}

/** The path and the query, as a browser may follow them; undefined for what could lead to another host. */
function ownAddress(url: string): string | undefined {
  const base = 'https://own.invalid';
  if (!/^\/(?![/\\])/.test(url) || !URL.canParse(url, base)) return undefined;
  const { origin, pathname, search } = new URL(url, base);
  return origin === base && !pathname.startsWith('//') ? pathname + search : undefined;
}
