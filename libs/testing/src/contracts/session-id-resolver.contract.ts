import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { SessionIdResolver, SessionToken } from '@nest-session/core';
import { generateSessionKey } from '@nest-session/core/internal';
import { HttpAgent, type HttpResponse } from '../http/http.agent.js';
import type { ContractCheck } from './contract.check.js';

/** The resolver under test, and how its clients behave. */
export interface SessionIdResolverContractOptions {
  /** Creates a new resolver for each check. */
  create(): SessionIdResolver;
  /** The request headers of a client that has received the responses with these headers, in this order. */
  present(...answers: IncomingHttpHeaders[]): Record<string, string>;
  /** The request headers of a client that sends this text in place of a token. */
  forge(text: string): Record<string, string>;
}

/** Returns the checks that every `SessionIdResolver` must pass. They use the resolver through a server. */
export function sessionIdResolverContract(options: SessionIdResolverContractOptions): readonly ContractCheck[] {
  return Object.entries(CHECKS).map(([name, check]) => ({
    name,
    check: async () => {
      const server = new ResolverServer(options.create());
      await server.start();
      try {
        await check(server, options);
      } finally {
        await server.stop();
      }
    },
  }));
}

type Check = (server: ResolverServer, options: SessionIdResolverContractOptions) => Promise<void>;

// None of these can be a token, which has 22 to 128 characters of base64url.
const GARBAGE = [
  '',
  ' ',
  'x',
  'a'.repeat(21),
  'a'.repeat(129),
  'a'.repeat(8_000),
  `${'a'.repeat(42)}=`,
  `${'a'.repeat(42)}.`,
  `${'a'.repeat(42)}%41`,
  '{x}',
  '*',
  'expires:x',
  '__proto__',
  'constructor',
  '%0d%0aSet-Cookie:%20a=b',
  '"'.repeat(43),
  ','.repeat(100),
  ';'.repeat(100),
  '='.repeat(100),
];

// What a client sends in place of headers when it opens a connection of GraphQL, some servers put among them.
const NO_TEXTS: readonly unknown[] = [{}, [], [{}], ['x'.repeat(43)], 1, true, null];

const CHECKS: Readonly<Record<string, Check>> = {
  'finds no token in a request that presents none': async (server) => {
    assert.deepEqual(await server.resolved({}), []);
  },

  'finds the token that it has sent': async (server, { present }) => {
    const { token } = generateSessionKey();
    const response = await server.send(token);
    assert.deepEqual(await server.resolved(present(response.headers)), [token.reveal()]);
  },

  'finds the last token that it has sent': async (server, { present }) => {
    const first = await server.send(generateSessionKey().token);
    const { token } = generateSessionKey();
    const last = await server.send(token, present(first.headers));
    assert.deepEqual(await server.resolved(present(first.headers, last.headers)), [token.reveal()]);
  },

  'finds no token after it has expired the token of the client': async (server, { present }) => {
    const sent = await server.send(generateSessionKey().token);
    const expired = await server.expire(present(sent.headers));
    assert.deepEqual(await server.resolved(present(sent.headers, expired.headers)), []);
  },

  'finds no token in malformed text, and does not fail': async (server, { forge }) => {
    for (const text of GARBAGE) assert.deepEqual(await server.resolved(forge(text)), [], JSON.stringify(text));
  },

  'finds no token in a header that is no text, and does not fail': async ({ resolver }) => {
    for (const value of NO_TEXTS) {
      const headers = Object.fromEntries(resolver.headers.map((name) => [name.toLowerCase(), value]));
      assert.deepEqual(
        resolver.resolve({ url: '/', headers } as unknown as IncomingMessage),
        [],
        JSON.stringify(value),
      );
    }
  },

  'sends a token in one place, and changes nothing else of the response': async (server) => {
    const { token } = generateSessionKey();
    const response = await server.send(token);
    assert.equal(response.status, 200);
    assert.equal(response.text, '[]');
    assert.equal(response.headers['x-application'], 'kept');
    assert.ok(response.setCookies.includes('application=kept'));
    const hidden = encodingsOf(token.reveal());
    const carriers = response.rawHeaders.filter((text) => hidden.some((encoding) => text.includes(encoding)));
    assert.ok(carriers.length <= 1, 'The token is in several headers');
  },

  'names the request headers that it reads': async (server, { present }) => {
    const { token } = generateSessionKey();
    const presented = present((await server.send(token)).headers);
    const named = server.resolver.headers.map((name) => name.toLowerCase());
    const read = Object.entries(presented).filter(([name]) => named.includes(name.toLowerCase()));
    assert.deepEqual(await server.resolved(Object.fromEntries(read)), [token.reveal()]);
  },

  'distinguishes clients whose requests run at the same time': async (server, { present }) => {
    const keys = Array.from({ length: 20 }, () => generateSessionKey());
    const found = await Promise.all(
      keys.map(async ({ token }) => server.resolved(present((await server.send(token)).headers))),
    );
    assert.deepEqual(
      found,
      keys.map(({ token }) => [token.reveal()]),
    );
  },
};

/** Responds with the tokens that the resolver finds in a request. */
class ResolverServer {
  readonly #server = createServer((request, response) => this.#respond(request, response));
  readonly #tokens = new Map<string, SessionToken>();
  #agent!: HttpAgent;
  #order = 0;

  constructor(readonly resolver: SessionIdResolver) {}

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#agent = new HttpAgent(`http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`);
  }

  async stop(): Promise<void> {
    this.#server.close();
    await once(this.#server, 'close');
  }

  async resolved(headers: Record<string, string>): Promise<readonly string[]> {
    return (await this.#ask('/', headers)).json();
  }

  send(token: SessionToken, headers: Record<string, string> = {}): Promise<HttpResponse> {
    const order = `/${this.#order++}`;
    this.#tokens.set(order, token);
    return this.#ask(order, headers);
  }

  expire(headers: Record<string, string>): Promise<HttpResponse> {
    return this.#ask('/expire', headers);
  }

  async #ask(path: string, headers: Record<string, string>): Promise<HttpResponse> {
    // The cookies come from `headers` alone, not from the jar of an earlier request.
    this.#agent.clearCookies();
    const response = await this.#agent.get(path, { headers });
    assert.equal(response.status, 200, response.text);
    return response;
  }

  #respond(request: IncomingMessage, response: ServerResponse): void {
    try {
      response.setHeader('Set-Cookie', 'application=kept');
      response.setHeader('X-Application', 'kept');
      const presented: readonly SessionToken[] = this.resolver.resolve(request);
      const token = this.#tokens.get(request.url ?? '');
      const client = { presented: presented[0], isRemembered: false };
      if (token) this.resolver.send(request, response, token, client);
      if (request.url === '/expire') this.resolver.expire(request, response, client);
      response.end(JSON.stringify(token ? [] : presented.map((each) => each.reveal())));
    } catch (error) {
      response.statusCode = 500;
      response.end(String(error));
    }
  }
}

function encodingsOf(token: string): string[] {
  return [token, Buffer.from(token).toString('base64'), Buffer.from(token).toString('hex')];
}
