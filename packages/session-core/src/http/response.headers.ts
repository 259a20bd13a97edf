import type { OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http';

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
    if (isRepeated) response.appendHeader(name, typeof value === 'number' ? String(value) : value);
    else response.setHeader(name, value);
  }
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

function entriesOf(headers: HeadersArgument): [string, string | number | readonly string[]][] {
  if (!Array.isArray(headers)) return Object.entries(headers) as [string, string | number | string[]][];
  const list = headers as readonly (string | number | readonly string[])[];
  if (Array.isArray(list[0])) return list as unknown as [string, string | number | readonly string[]][];
  return Array.from({ length: Math.ceil(list.length / 2) }, (_, index) => [
    String(list[2 * index]),
    list[2 * index + 1]!,
  ]);
}
