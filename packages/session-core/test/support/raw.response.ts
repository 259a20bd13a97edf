import type { ServerResponse } from 'node:http';

/** What `@Res()` gives: on Fastify a reply with the response of Node.js in it, on Express that response itself. */
export interface RawReply {
  readonly raw?: ServerResponse;
}

export function rawOf(reply: RawReply): ServerResponse {
  return reply.raw ?? (reply as ServerResponse);
}
