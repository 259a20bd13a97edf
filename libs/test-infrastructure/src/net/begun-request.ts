import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { json } from 'node:stream/consumers';
import type { HttpAgent } from '@nest-session/testing';

/** The answer to a request: its body as JSON. */
export interface BegunAnswer {
  readonly status: number;
  readonly body: unknown;
}

/**
 * Sends a POST of this client but for the end of its body, as a slow client does. The function that it returns sends
 * the rest.
 */
export function beginRequest(
  agent: HttpAgent,
  path: string,
  headers: Record<string, string> = {},
  body = '{"amount":1000}',
) {
  const sent = request(agent.origin + path, {
    method: 'POST',
    agent: false,
    headers: {
      ...agent.headersFor(path),
      'content-type': 'application/json',
      'content-length': body.length,
      ...headers,
    },
  });
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
  answered.catch(() => undefined);
  sent.write(body.slice(0, 1));
  return async (): Promise<BegunAnswer> => {
    sent.end(body.slice(1));
    const [response] = await answered;
    return { status: response.statusCode ?? 0, body: await json(response) };
  };
}
