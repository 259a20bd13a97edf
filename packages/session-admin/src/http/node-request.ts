import type { IncomingMessage } from 'node:http';

/** The request of Node.js in a request of Express or Fastify. */
export function nodeRequest(request: object): IncomingMessage {
  return (request as { readonly raw?: IncomingMessage }).raw ?? (request as IncomingMessage);
}
