import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';

type Http2Request = IncomingMessage & { readonly stream?: { readonly endAfterHeaders: boolean } };

/**
 * Whether a request whose client left while its session was loaded is served all the same: because of what it changes.
 * Not when it has a body, because Node.js has discarded that.
 */
export function isServedWithoutClient({ method, headers, stream }: Http2Request): boolean {
  if (method === 'GET' || method === 'HEAD') return false;
  return !announcesBody(headers) && stream?.endAfterHeaders !== false;
}

function announcesBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/**
 * Tells later whether the client left before anybody has read the body: the parsers of Express then skip it, and the
 * handler would run as if nothing had been sent. The response shows it later, or never where it waits for another one
 * of its connection. Undefined for a request without a body.
 */
export function bodyWatchOf(request: IncomingMessage): (() => boolean) | undefined {
  const { headers, socket } = request;
  if (!announcesBody(headers)) return undefined;
  // Adapters of serverless platforms give a body that is read already, on a socket that never was readable.
  const { readable } = socket;
  return () => !request.readableEnded && (request.aborted || socket.destroyed || (readable && !socket.readable));
}

/** Tells those who listen from now on that the client has left. All others were told when it left. */
export function repeatClose(request: IncomingMessage, response: ServerResponse): void {
  // On HTTP/2, other requests may go on using the connection.
  const emitters = request.httpVersionMajor === 1 ? [request, response, request.socket] : [request, response];
  for (const emitter of emitters) {
    emitter.on('newListener', (event: string | symbol, listener: (...args: unknown[]) => unknown) => {
      if (event !== 'close' && event !== 'aborted') return;
      process.nextTick(() => {
        // `once()` adds a function that has the listener. It is not found when it was removed in the meantime.
        const added = emitter.rawListeners(event) as ((...args: unknown[]) => unknown)[];
        added
          .find((each) => each === listener || (each as { listener?: unknown }).listener === listener)
          ?.call(emitter);
      });
    });
  }
}
