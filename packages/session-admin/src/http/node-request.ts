import type { IncomingMessage } from 'node:http';

/** The request of Node.js in a request of Express or Fastify. */
export function nodeRequest(request: object): IncomingMessage {
  const { raw } = request as { readonly raw?: unknown };
  // On Express, `raw` is whatever the application keeps there.
  return isRequest(raw) ? raw : (request as IncomingMessage);
}

function isRequest(value: unknown): value is IncomingMessage {
  return typeof value === 'object' && value !== null && 'headers' in value && 'socket' in value;
}
