import type { IncomingMessage, Server } from 'node:http';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Field, GraphQLModule, ObjectType, Query, Resolver, Subscription } from '@nestjs/graphql';
import { Session } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, RedisServer, signIn } from '@nest-session/testing';
import { PubSub } from 'graphql-subscriptions';
import { createClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import { closeApps, SocketApp } from '../support/socket.app.js';

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

  @Query(() => String)
  nothing() {
    return '';
  }

  @Subscription(() => News, { resolve: (news: object) => news })
  news(@Session() session: Session) {
    if (session.principalName !== 'ada') throw new Error('Sign in first');
    NewsResolver.subscribers++;
    return NewsResolver.channel.asyncIterableIterator('news');
  }
}

let redis: RedisServer;
beforeAll(async () => {
  redis = await RedisServer.start();
});
afterAll(() => redis.stop());
afterEach(closeApps);

async function start() {
  const app = await SocketApp.start({
    platform: 'ws',
    url: redis.url,
    sockets: { origins: ['https://app.example.com'] },
    imports: [
      GraphQLModule.forRoot<ApolloDriverConfig>({
        driver: ApolloDriver,
        autoSchemaFile: true,
        subscriptions: { 'graphql-ws': true },
      }),
    ],
    providers: [NewsResolver],
  });
  const agent = await signIn(app.nest, { principalName: 'ada' });
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
      super(url, protocol, { headers: { ...(agent.headersFor('/') as Record<string, string>), ...headers } });
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

it('subscriptions of GraphQL are refused to foreign pages, and open to pages that are listed', async () => {
  const { app, open } = await start();
  expect(await outcome(open('https://evil.example'))).toBe('Unexpected server response: 403');
  expect(await outcome(open('https://app.example.com'))).toBe('open');
  expect(await outcome(open(app.origin))).toBe('open');
  expect(await outcome(open())).toBe('open');
});

it('subscriptions of GraphQL end with the session', async () => {
  const { app, agent } = await start();
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

it('nothing but this module sees a refused upgrade', async () => {
  const { app, open } = await start();
  const seen: unknown[] = [];
  (app.nest.getHttpServer() as Server).on('upgrade', ({ headers }: IncomingMessage) => seen.push(headers.origin));
  await outcome(open('https://evil.example'));
  await outcome(open('https://app.example.com'));
  expect(seen).toEqual(['https://app.example.com']);
});
