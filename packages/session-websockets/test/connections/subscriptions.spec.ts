import { once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import { type AddressInfo, createConnection } from 'node:net';
import { json } from 'node:stream/consumers';
import type { DynamicModule } from '@nestjs/common';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Field, GraphQLModule, ObjectType, Query, Resolver, Subscription } from '@nestjs/graphql';
import { MercuriusDriver, type MercuriusDriverConfig } from '@nestjs/mercurius';
import { WebSocketGateway } from '@nestjs/websockets';
import { HeaderSessionIdResolver, Session } from '@nest-session/core';
import { ExpressSessionModule } from '@nest-session/express-session';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, freePort, type HttpAgent, RedisServer, signIn } from '@nest-session/testing';
import { PubSub } from 'graphql-subscriptions';
import { createClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import { OpenConnections } from '@nest-session/core/internal';
import { closeApps, PLATFORMS, SocketApp, type SocketAppOptions, VisitsGateway } from '../support/socket.app.js';
import { closeClients, connect } from '../support/socket.client.js';

LeakGuard.install();

@ObjectType()
class News {
  @Field(() => String)
  text!: string;
}

@Resolver()
class NewsResolver {
  static readonly channel = new PubSub();
  static subscribers = 0;
  static properties: string[] = [];

  @Query(() => String)
  nothing() {
    return '';
  }

  @Subscription(() => News, { resolve: (news: object) => news })
  news(@Session() session: Session) {
    if (session.principalName !== 'ada') throw new Error('Sign in first');
    NewsResolver.subscribers++;
    NewsResolver.properties = Object.keys(session);
    return NewsResolver.channel.asyncIterableIterator('news');
  }
}

let redis: RedisServer;
beforeAll(async () => {
  redis = await RedisServer.start();
});
afterAll(() => redis.stop());
afterEach(closeClients);
afterEach(closeApps);

const apollo = () =>
  GraphQLModule.forRoot<ApolloDriverConfig>({
    driver: ApolloDriver,
    autoSchemaFile: true,
    subscriptions: { 'graphql-ws': true },
  });
const mercurius = () =>
  GraphQLModule.forRoot<MercuriusDriverConfig>({ driver: MercuriusDriver, autoSchemaFile: true, subscription: true });

const DRIVERS = [
  { driver: 'Apollo', graphql: apollo, adapter: () => new ExpressAdapter() },
  { driver: 'Mercurius', graphql: mercurius, adapter: () => new FastifyAdapter() },
];

async function start(
  { graphql, adapter } = DRIVERS[0]!,
  others: DynamicModule[] = [],
  { platform = 'ws', providers = [] }: Partial<SocketAppOptions> = {},
) {
  NewsResolver.subscribers = 0;
  const app = await SocketApp.start({
    platform,
    url: redis.url,
    sockets: { origins: ['https://app.example.com'] },
    adapter: adapter(),
    imports: [graphql(), ...others],
    providers: [NewsResolver, ...providers],
  });
  const agent = await signIn(app.nest, { principalName: 'ada', attributes: { visits: 1 } });
  const open = (origin?: string) =>
    new (withCookies(agent, origin === undefined ? {} : { origin }))(webSocketUrl(app), 'graphql-transport-ws');
  return { app, agent, open };
}

function webSocketUrl({ origin }: SocketApp): string {
  return `${origin.replace('http:', 'ws:')}/graphql`;
}

/** A browser's WebSocket sends the cookies by itself. */
function withCookies(agent: HttpAgent, headers: Record<string, string> = {}) {
  return class extends WebSocket {
    constructor(url: string, protocol: string) {
      super(url, protocol, { headers: { ...agent.headersFor('/'), ...headers } });
    }
  };
}

const outcome = (socket: WebSocket): Promise<string> =>
  new Promise((resolve) => {
    socket.on('open', () => {
      socket.terminate();
      resolve('open');
    });
    socket.on('error', ({ message }) => resolve(message));
  });

it.each(DRIVERS)(
  'subscriptions by $driver are refused to foreign pages, and open to pages that are listed',
  async (driver) => {
    const { app, open } = await start(driver);
    const foreign = open('https://evil.example');
    const [, refused] = (await once(foreign, 'unexpected-response')) as [unknown, IncomingMessage];
    const body = { statusCode: 403, reason: 'cross-origin' };
    expect([refused.statusCode, await json(refused)]).toMatchObject([403, body]);
    expect(await outcome(open('https://app.example.com'))).toBe('open');
    expect(await outcome(open(app.origin))).toBe('open');
    expect(await outcome(open())).toBe('open');
  },
);

it.each(DRIVERS)('subscriptions by $driver end with the session', async (driver) => {
  const { app, agent } = await start(driver);
  const client = createClient({ url: webSocketUrl(app), webSocketImpl: withCookies(agent), retryAttempts: 0 });
  const ended = new Promise<unknown>((resolve) => {
    client.subscribe(
      { query: 'subscription { news { text } }' },
      { next: () => undefined, error: resolve, complete: () => resolve('complete') },
    );
  });
  await eventually(() => expect(NewsResolver.subscribers).toBe(1));
  await agent.post('/logout');
  expect(await ended).toMatchObject({ code: 1006 });
  await client.dispose();
});

it('a subscription by Mercurius ends with the session that its client presents over the connection', async () => {
  const { app, agent } = await start(DRIVERS[1]);
  const connectionParams = { headers: agent.headersFor('/') };
  const client = createClient({ url: webSocketUrl(app), webSocketImpl: WebSocket, connectionParams, retryAttempts: 0 });
  const ended = new Promise<unknown>((resolve) => {
    client.subscribe(
      { query: 'subscription { news { text } }' },
      { next: () => resolve('news'), error: resolve, complete: () => resolve('complete') },
    );
  });
  await eventually(() => expect(NewsResolver.subscribers).toBe(1));
  await agent.post('/logout');
  void eventually(() => app.nest.get(OpenConnections).ids.length === 0, { timeout: 2000 })
    .catch(() => undefined)
    .then(() => NewsResolver.channel.publish('news', { text: 'for ada' }));
  expect(await ended).toMatchObject({ code: 1006 });
  await client.dispose();
});

it.each<object>([
  { cookie: {} },
  { cookie: ['SESSION=x'] },
  { cookie: { toString: 1 } },
  { cookie: null },
  { cookie: 1, origin: { toString: 1 }, 'user-agent': {}, 'x-forwarded-proto': { toString: 1 } },
])('a client of Mercurius that presents %j over the connection has no session', async (headers) => {
  const { app } = await start(DRIVERS[1]);
  const client = createClient({
    url: webSocketUrl(app),
    webSocketImpl: WebSocket,
    connectionParams: { headers },
    retryAttempts: 0,
  });
  const reply = await new Promise<unknown>((resolve) => {
    client.subscribe(
      { query: 'subscription { news { text } }' },
      { next: resolve, error: resolve, complete: () => resolve('complete') },
    );
  });
  const refusal = 'origin' in headers ? 'This page may not subscribe' : 'Sign in first';
  expect(JSON.stringify(reply)).toContain(refusal);
  await client.dispose();
});

it.each(DRIVERS)(
  'a subscription by $driver has the property bag of express-session where that is imported',
  async (driver) => {
    const { app, agent } = await start(driver, [ExpressSessionModule.forRoot()]);
    const client = createClient({ url: webSocketUrl(app), webSocketImpl: withCookies(agent), retryAttempts: 0 });
    client.subscribe({ query: 'subscription { news { text } }' }, { next() {}, error() {}, complete() {} });
    await eventually(() => expect(NewsResolver.subscribers).toBe(1));
    expect(NewsResolver.properties).toEqual(['cookie', 'visits']);
    await client.dispose();
  },
);

it.each(DRIVERS.flatMap((driver) => PLATFORMS.map((platform) => ({ ...driver, platform }))))(
  'subscriptions by $driver work beside gateways of $platform that have a port of their own',
  async ({ platform, ...driver }) => {
    const port = await freePort();
    @WebSocketGateway(port, { path: '/own' })
    class OnOwnPort extends VisitsGateway {}
    const { app, agent, open } = await start(driver, [], { platform, providers: [OnOwnPort] });
    expect(await outcome(open(app.origin))).toBe('open');
    const headers = { origin: 'https://app.example.com' };
    const client = await connect(platform, agent, { origin: `http://127.0.0.1:${port}`, path: '/own', headers });
    expect(await client.ask('read')).toMatchObject({ user: 'ada' });
  },
);

it('nothing but this module sees a refused upgrade', async () => {
  const { app, open } = await start();
  const seen: unknown[] = [];
  (app.nest.getHttpServer() as Server).on('upgrade', ({ headers }: IncomingMessage) => seen.push(headers.origin));
  await outcome(open('https://evil.example'));
  await outcome(open('https://app.example.com'));
  expect(seen).toEqual(['https://app.example.com']);
});

it('an upgrade of a foreign page is refused where Node.js does not call emit() of the server', async () => {
  const { app, open } = await start();
  const server = app.nest.getHttpServer() as Server;
  Reflect.deleteProperty(server, 'emit');
  expect(await outcome(open('https://evil.example'))).toMatch(/socket hang up|403/);
  expect(NewsResolver.subscribers).toBe(0);
  expect(app.log.matching(/This version of Node\.js passes over the first check of the origin/)).toHaveLength(1);
  expect(await outcome(open('https://app.example.com'))).toBe('open');
});

it('an upgrade is a plain request while nothing listens for upgrades, also after something did', async () => {
  const app = await SocketApp.start({ platform: 'ws', url: redis.url, providers: [] });
  const server = app.nest.getHttpServer() as Server;
  const others = server.listeners('upgrade') as (() => void)[];
  for (const each of others) server.off('upgrade', each);
  expect(server.listenerCount('upgrade')).toBe(0);
  const listener = (): void => undefined;
  server.on('upgrade', listener);
  expect(server.listenerCount('upgrade')).toBe(2);
  expect(server.listeners('upgrade')[1]).toBe(listener);
  server.off('upgrade', listener);
  expect(server.listenerCount('upgrade')).toBe(0);
});

it('a foreign page that hangs up while it is refused does no harm', async () => {
  const { app, open } = await start();
  const { port } = app.nest.getHttpServer().address() as AddressInfo;
  const headers = ['Host: x', 'Origin: https://evil.example', 'Connection: Upgrade', 'Upgrade: websocket'];
  const request = ['GET /graphql HTTP/1.1', ...headers, '', ''].join('\r\n');
  for (let client = 0; client < 20; client++) {
    const socket = createConnection(port, '127.0.0.1');
    await once(socket, 'connect');
    // The answer finds a connection that is reset.
    socket.write(request, () => socket.resetAndDestroy());
    await once(socket, 'close');
  }
  expect(await outcome(open())).toBe('open');
});

const fails = (): never => {
  throw new Error('The option fails on purpose');
};

class FailingResolver extends HeaderSessionIdResolver {
  override resolve(): never {
    return fails();
  }
}

it.each<[string, SocketAppOptions['session']]>([
  ['exclude', { exclude: fails }],
  ['sessionIdResolver', { sessionIdResolver: new FailingResolver('X-Token') }],
])('an upgrade is refused where option %s fails, and the application goes on', async (_option, session) => {
  const app = await SocketApp.start({ platform: 'ws', url: redis.url, session, providers: [VisitsGateway] });
  for (const path of ['/graphql', '/sockets']) {
    const socket = new WebSocket(app.origin.replace('http:', 'ws:') + path);
    expect(await outcome(socket)).toBe('Unexpected server response: 500');
  }
  expect(app.log.matching(/The option fails on purpose/)).toHaveLength(2);
});

it('subscriptions end with the session where their path begins as that of socket.io does', async () => {
  @WebSocketGateway({ path: '/graph' })
  class Gateway {}
  NewsResolver.subscribers = 0;
  const app = await SocketApp.start({
    platform: 'socket.io',
    url: redis.url,
    imports: [apollo()],
    providers: [NewsResolver, Gateway],
  });
  const agent = await signIn(app.nest, { principalName: 'ada' });
  const socket = new (withCookies(agent))(webSocketUrl(app), 'graphql-transport-ws');
  await once(socket, 'open');
  const closed = once(socket, 'close');
  await agent.post('/logout');
  expect((await closed)[0]).toBe(1006);
});
