export interface Response {
  readonly status: number;
  /** The lines of the head, without the status line. */
  readonly lines: readonly string[];
  /** By name in lower case; of several, the last. */
  readonly headers: ReadonlyMap<string, string>;
  readonly setCookies: readonly string[];
  readonly body: string;
}

export interface ParsedResponses {
  readonly responses: readonly Response[];
  /** Whether nothing is left behind the last response. */
  readonly isWhole: boolean;
}

const HEADER = /^([!#$%&'*+.^`|~\w-]+): ?([\t\x20-\x7e\x80-\xff]*)$/;

/**
 * The final responses in the bytes that a server sent on one connection. The server says in `X-Request-Id` which method
 * it has understood.
 * @throws Error for anything that is no HTTP
 */
export function parseResponses(bytes: Buffer, isClosed: boolean): ParsedResponses {
  const text = bytes.toString('latin1');
  const responses: Response[] = [];
  let at = 0;
  while (at < text.length) {
    const end = text.indexOf('\r\n\r\n', at);
    if (end === -1) return { responses, isWhole: false };
    const [statusLine = '', ...lines] = text.slice(at, end).split('\r\n');
    const status = Number(/^HTTP\/1\.1 ([1-5]\d\d) [\x20-\x7e]*$/.exec(statusLine)?.[1]);
    if (Number.isNaN(status)) throw new Error(`No status line: ${JSON.stringify(statusLine)}`);
    const headers = new Map(lines.map(headerOf));
    const body = bodyOf(text, end + 4, status, headers, isClosed);
    if (!body) return { responses, isWhole: false };
    at = body.end;
    if (status < 200) continue;
    const setCookies = lines.filter((line) => /^set-cookie:/i.test(line)).map((line) => headerOf(line)[1]);
    responses.push({ status, lines, headers, setCookies, body: body.text });
  }
  return { responses, isWhole: true };
}

function headerOf(line: string): [name: string, value: string] {
  const [, name, value] = HEADER.exec(line) ?? [];
  if (name === undefined) throw new Error(`No header: ${JSON.stringify(line)}`);
  return [name.toLowerCase(), value!];
}

/** Undefined for a body that is not complete. */
function bodyOf(
  text: string,
  begin: number,
  status: number,
  headers: ReadonlyMap<string, string>,
  isClosed: boolean,
): { readonly text: string; readonly end: number } | undefined {
  if (status < 200 || status === 204 || status === 304 || headers.get('x-request-id') === 'HEAD') {
    return { text: '', end: begin };
  }
  if (headers.get('transfer-encoding') === 'chunked') return chunksOf(text, begin);
  const length = headers.get('content-length');
  if (length === undefined) return isClosed ? { text: text.slice(begin), end: text.length } : undefined;
  if (!/^\d+$/.test(length)) throw new Error(`No length: ${JSON.stringify(length)}`);
  const end = begin + Number(length);
  return end <= text.length ? { text: text.slice(begin, end), end } : undefined;
}

function chunksOf(text: string, begin: number): { readonly text: string; readonly end: number } | undefined {
  let body = '';
  for (let at = begin; ;) {
    const line = text.indexOf('\r\n', at);
    if (line === -1) return undefined;
    const size = text.slice(at, line);
    if (!/^[\da-f]+$/i.test(size)) throw new Error(`No chunk: ${JSON.stringify(size)}`);
    const data = line + 2;
    at = data + Number.parseInt(size, 16) + 2;
    if (at > text.length) return undefined;
    if (text.slice(at - 2, at) !== '\r\n') throw new Error('A chunk without its end');
    if (size === '0') return { text: body, end: at };
    body += text.slice(data, at - 2);
  }
}
