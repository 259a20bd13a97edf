import type { OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http';

// Any other header may belong only to the response that is replaced.
const OF_EVERY_RESPONSE = new RegExp(
  [
    '^(access-control-.*|cross-origin-.*|origin-agent-cluster|timing-allow-origin|vary', // another origin may read it
    'content-security-policy.*|permissions-policy|referrer-policy|strict-transport-security|x-content-type-options',
    'x-dns-prefetch-control|x-download-options|x-frame-options|x-permitted-cross-domain-policies|x-xss-protection',
    '(x-)?ratelimit.*|x-(request|correlation)-id|connection)$',
  ].join('|'),
);

export type HeadersArgument = OutgoingHttpHeaders | readonly OutgoingHttpHeader[];

/** As `writeHead()` does, but leaves the response open. A header that a list names several times keeps all values. */
export function applyHeaders(response: ServerResponse, headers: HeadersArgument): void {
  if (!isList(headers)) {
    for (const name of Object.keys(headers)) response.setHeader(name, headers[name]!);
    return;
  }
  const names = new Set<string>();
  for (const [name, value] of entriesOf(headers)) {
    const isRepeated = names.has(name.toLowerCase());
    names.add(name.toLowerCase());
    if (isRepeated) appendHeader(response, name, value);
    else response.setHeader(name, value);
  }
}

/** Unlike Node.js, does not push into the application's array: of a constant one, the next response would have it. */
export function appendHeader(response: ServerResponse, name: string, value: OutgoingHttpHeader): void {
  const values = [response.getHeader(name) ?? [], value].flat();
  response.setHeader(name, values.map(String));
}

/**
 * Removes the headers that describe the application's response, so that another response can be sent. Headers that
 * servers put on every response stay. Without CORS headers, a browser would hide even the status from the page.
 */
export function dropResponseHeaders(response: ServerResponse): void {
  for (const name of response.getHeaderNames()) if (!OF_EVERY_RESPONSE.test(name)) response.removeHeader(name);
}

export function appendVary(response: ServerResponse, field: string): void {
  const vary = response.getHeader('Vary');
  if (vary === undefined) return void response.setHeader('Vary', field);
  const fields = listed(vary);
  if (fields.includes('*') || fields.some((each) => each.toLowerCase() === field.toLowerCase())) return;
  response.setHeader('Vary', [...fields, field].join(', '));
}

/** Keeps the response out of all caches. Overrides all caching headers of the application, including those for CDNs. */
export function forbidStoring(response: ServerResponse): void {
  for (const name of response.getHeaderNames()) if (BEFORE_CACHE_CONTROL.test(name)) response.removeHeader(name);
  const directives = listed(response.getHeader('Cache-Control'));
  if (!directives.some((each) => each.toLowerCase() === 'no-store')) response.setHeader('Cache-Control', 'no-store');
}

// Caches obey these headers instead of `Cache-Control`: CDNs that follow RFC 9213, 2 (the suffix `-cache-control`),
// Akamai (`Edge-Control`), Fastly and Varnish (`Surrogate-Control`), and nginx (`X-Accel-Expires`).
const BEFORE_CACHE_CONTROL = /^(?:.+-cache-control|(?:.+-)?(?:edge|surrogate)-control|x-accel-expires)$/;

/** Shared caches may ignore `Vary`. Leaves the other directives of the application unchanged. */
export function forbidSharing(response: ServerResponse): void {
  const header = response.getHeader('Cache-Control');
  // Of most responses.
  if (header === undefined) return void response.setHeader('Cache-Control', 'private');
  const directives = listed(header);
  const names = directives.map((each) => each.split('=', 1)[0]!.trim().toLowerCase());
  if (names.includes('no-store')) return;
  // `private="X-Header"` keeps only that header out of shared caches.
  const isPrivate = directives.some((each) => each.toLowerCase() === 'private');
  if (isPrivate && !names.some((name) => OF_SHARED_CACHES.has(name))) return;
  const others = directives.filter((_, i) => names[i] !== 'private' && !OF_SHARED_CACHES.has(names[i]!));
  response.setHeader('Cache-Control', ['private', ...others].join(', '));
}

const OF_SHARED_CACHES: ReadonlySet<string> = new Set(['public', 's-maxage', 'proxy-revalidate']);

/** The members of a list by RFC 9110, 5.6.1. A comma in quotes does not separate members. */
function listed(header: OutgoingHttpHeader | undefined): string[] {
  if (header === undefined) return [];
  return [header]
    .flat()
    .flatMap((line) => String(line).match(/(?:[^,"]|"[^"]*"?)+/g) ?? [])
    .map((each) => each.trim())
    .filter((each) => each !== '');
}

function entriesOf(headers: readonly OutgoingHttpHeader[]): (readonly [string, OutgoingHttpHeader])[] {
  if (Array.isArray(headers[0])) return headers as unknown as [string, OutgoingHttpHeader][];
  const names = headers.filter((_, index) => index % 2 === 0);
  return names.map((name, index) => [String(name), headers[2 * index + 1]!] as const);
}

function isList(headers: HeadersArgument): headers is readonly OutgoingHttpHeader[] {
  return Array.isArray(headers);
}
