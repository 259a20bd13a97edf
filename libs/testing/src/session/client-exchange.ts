import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { HttpAgent } from '../http/http.agent.js';

/** A request of a client and its response, for a `SessionIdResolver`. Nothing is sent. */
export interface ClientExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

export function exchangeOf(agent: HttpAgent, path: string): ClientExchange {
  const { host } = new URL(agent.origin);
  const request = new IncomingMessage(new Socket());
  Object.assign(request, { method: 'GET', url: path, headers: { host, ...agent.headersFor(path) } });
  return { request, response: new ServerResponse(request) };
}
