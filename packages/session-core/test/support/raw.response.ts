import type { ServerResponse } from 'node:http';

/** The argument of `@Res()`: on Fastify a reply that holds the response of Node.js, on Express that response itself. */
export interface RawReply {
  readonly raw?: ServerResponse;
}

export function rawOf(reply: RawReply): ServerResponse {
  return reply.raw ?? (reply as ServerResponse);
}
