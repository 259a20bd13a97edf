import type { IncomingMessage } from 'node:http';

/** Something that was opened by a request: the request itself, as a platform wraps it, or a client of a gateway. */
interface Opened {
  /** Of a request of Fastify. */
  readonly raw?: object;
  /** Of a socket of socket.io. */
  readonly request?: object;
}

const remembered = new WeakMap<object, IncomingMessage>();

/** Remembers which request opened a client that does not know it, such as a WebSocket of ws. */
export function rememberRequest(client: object, request: IncomingMessage): void {
  remembered.set(client, request);
}

/** The request of Node.js behind something that a request opened. @throws TypeError when there is none */
export function requestOf(source: object): IncomingMessage {
  const { raw, request } = Object(source) as Opened;
  const found = [remembered.get(source), raw, request, source].find(isRequest);
  if (found) return found;
  throw new TypeError(
    'Not a request: pass the request of Node.js, Express or Fastify, a socket of socket.io, or a client of a gateway',
  );
}

/** Whether a request asked to turn its connection into another one, such as a WebSocket. */
export function isUpgrade(request: IncomingMessage): boolean {
  return (request as { readonly upgrade?: boolean }).upgrade === true;
}

function isRequest(value: unknown): value is IncomingMessage {
  return typeof value === 'object' && value !== null && 'headers' in value && 'socket' in value;
}
