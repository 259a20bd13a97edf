import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { isDestroyed } from './response-hold.js';

type Http2Request = IncomingMessage & { readonly stream?: { readonly endAfterHeaders: boolean } };

/** Where the client has left, the request is served because of what it changes, or not at all. */
export function serveWithoutClient(
  request: IncomingMessage,
  response: ServerResponse,
  wasReadable: boolean,
  serve: () => void,
): void {
  if (isDestroyed(response) && !mayChangeSomething(request)) return;
  // Nobody is there to be answered, so the connection must not wait for it.
  if (isBodyLost(request, wasReadable)) return void response.destroy();
  if (!isDestroyed(response)) return serve();
  // By then, all have emitted what they emit when a client leaves.
  setImmediate(() => {
    repeatClose(request, response);
    serve();
  });
}

/** Not when it has a body, because Node.js has discarded that. */
function mayChangeSomething({ method, headers, stream }: Http2Request): boolean {
  if (method === 'GET' || method === 'HEAD') return false;
  return !announcesBody(headers) && stream?.endAfterHeaders !== false;
}

function announcesBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/**
 * Whether the client left before anybody has read the body: the parsers of Express then skip it, and the handler would
 * run as if nothing had been sent. The response shows it later, or never where it waits for another one of its
 * connection.
 */
function isBodyLost({ headers, socket, readableEnded, aborted }: IncomingMessage, wasReadable: boolean): boolean {
  if (readableEnded || !announcesBody(headers)) return false;
  // Adapters of serverless platforms give a body that is read already, on a socket that never was readable.
  return aborted || socket.destroyed || (wasReadable && !socket.readable);
}

/** Tells those who listen from now on that the client has left. All others were told when it left. */
function repeatClose(request: IncomingMessage, response: ServerResponse): void {
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
