import type { HttpAgent } from '@nest-session/testing';
import { type Client, createClient } from 'graphql-ws';
import { WebSocket } from 'ws';

export interface GraphqlResult {
  readonly data?: Record<string, any> | null;
  readonly errors?: readonly { readonly message: string }[];
}

const clients: Client[] = [];

/** Sends a query or mutation as a request. */
export async function ask(agent: HttpAgent, query: string): Promise<GraphqlResult> {
  return (await agent.post('/graphql', { query })).json<GraphqlResult>();
}

/** A client with a connection of its own, which is opened with the cookies that the agent has by then. */
export function connect(agent: HttpAgent, headers: Record<string, string> = {}): Client {
  class WithHeaders extends WebSocket {
    constructor(url: string, protocol: string) {
      super(url, protocol, { headers: { ...agent.headersFor('/graphql'), ...headers } });
    }
  }
  const url = `${agent.origin.replace('http:', 'ws:')}/graphql`;
  const client = createClient({ url, webSocketImpl: WithHeaders, retryAttempts: 0 });
  clients.push(client);
  return client;
}

/** The results of an operation over a connection, one after the other. */
export function iterate(client: Client, query: string): AsyncIterableIterator<GraphqlResult> {
  return client.iterate({ query }) as AsyncIterableIterator<GraphqlResult>;
}

/** Closes the connections of all clients; for `afterEach`. */
export async function disposeClients(): Promise<void> {
  for (const client of clients.splice(0)) {
    client.terminate();
    await client.dispose();
  }
}
