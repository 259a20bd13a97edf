import { once } from 'node:events';
import { connect } from 'node:net';

export interface RawResponse {
  readonly status: number;
  readonly head: string;
  readonly setCookies: readonly string[];
  readonly body: string;
}

/** Sends header lines unchanged; the response. */
export async function sendRaw(
  url: string,
  requestLine: string,
  lines: readonly string[],
  host = 'a',
): Promise<RawResponse> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  // A server that rejects a request closes the connection before it has read all of it.
  socket.on('error', () => undefined);
  socket.write([`${requestLine} HTTP/1.1`, `Host: ${host}`, 'Connection: close', ...lines, '', ''].join('\r\n'));
  await once(socket, 'close');
  const text = Buffer.concat(chunks).toString('latin1');
  const [head = '', ...body] = text.split('\r\n\r\n');
  const setCookies = [...head.matchAll(/^set-cookie: (.*)\r?$/gim)].map(([, value]) => value!);
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]), head, setCookies, body: body.join('\r\n\r\n') };
}
