import type { OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http';

// Any other may have been meant for the one answer that does not leave.
const OF_EVERY_ANSWER = new RegExp(
  [
    '^(access-control-.*|cross-origin-.*|origin-agent-cluster|timing-allow-origin|vary', // another origin may read it
    'content-security-policy.*|permissions-policy|referrer-policy|strict-transport-security|x-content-type-options',
    'x-dns-prefetch-control|x-download-options|x-frame-options|x-permitted-cross-domain-policies|x-xss-protection',
    '(x-)?ratelimit.*|x-(request|correlation)-id|connection)$',
  ].join('|'),
);

/** What `writeHead()` takes: an object, names and values in turn, or pairs of them. */
export type HeadersArgument = OutgoingHttpHeaders | readonly OutgoingHttpHeader[];

/**
 * Sets headers as `writeHead()` would, but so that others can still be added: they replace what was set before, and
 * one that an array names several times keeps all its values.
 */
export function applyHeaders(response: ServerResponse, headers: HeadersArgument): void {
  const names = new Set<string>();
  for (const [name, value] of entriesOf(headers)) {
    const isRepeated = names.has(name.toLowerCase());
    names.add(name.toLowerCase());
    if (isRepeated) appendHeader(response, name, value);
    else response.setHeader(name, value);
  }
}

/**
 * Adds a value and keeps those that are there. Unlike the method of Node.js it does not push it into the array that the
 * application has set, which may be a constant: the next response would carry this one's cookie.
 */
export function appendHeader(response: ServerResponse, name: string, value: OutgoingHttpHeader): void {
  const values = [response.getHeader(name) ?? [], value].flat();
  response.setHeader(name, values.map(String));
}

/**
 * Takes away what the application has said of its answer, for another to be sent. What servers say of every answer
 * stays: without CORS headers a browser would not even show the status to the page.
 */
export function dropAnswerHeaders(response: ServerResponse): void {
  for (const name of response.getHeaderNames()) if (!OF_EVERY_ANSWER.test(name)) response.removeHeader(name);
}

/** Says that the answer depends on a header of the request. */
export function appendVary(response: ServerResponse, field: string): void {
  const fields = listed(response.getHeader('Vary'));
  if (fields.includes('*') || fields.some((each) => each.toLowerCase() === field.toLowerCase())) return;
  response.setHeader('Vary', [...fields, field].join(', '));
}

/** Keeps the answer out of all caches, whatever the application has said about it. */
export function forbidStoring(response: ServerResponse): void {
  const directives = listed(response.getHeader('Cache-Control'));
  if (!directives.some((each) => each.toLowerCase() === 'no-store')) response.setHeader('Cache-Control', 'no-store');
}

function listed(header: OutgoingHttpHeader | undefined): string[] {
  if (header === undefined) return [];
  return [header]
    .flat()
    .flatMap((line) => String(line).split(','))
    .map((each) => each.trim())
    .filter((each) => each !== '');
}

function entriesOf(headers: HeadersArgument): (readonly [string, OutgoingHttpHeader])[] {
  if (!isList(headers)) return Object.entries(headers) as [string, OutgoingHttpHeader][];
  if (Array.isArray(headers[0])) return headers as unknown as [string, OutgoingHttpHeader][];
  const names = headers.filter((_, index) => index % 2 === 0);
  return names.map((name, index) => [String(name), headers[2 * index + 1]!] as const);
}

function isList(headers: HeadersArgument): headers is readonly OutgoingHttpHeader[] {
  return Array.isArray(headers);
}
