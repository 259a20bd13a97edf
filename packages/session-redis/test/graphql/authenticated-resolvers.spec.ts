import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { GraphQLModule, Mutation, Query, Resolver, Subscription } from '@nestjs/graphql';
import { MercuriusDriver, type MercuriusDriverConfig } from '@nestjs/mercurius';
import { Authenticated, Public, RecentlyAuthenticated, SessionRepository } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent, RedisServer, sessionOf, signIn } from '@nest-session/testing';
import { PubSub } from 'graphql-subscriptions';
import { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';
import { ask, connect, disposeClients, type GraphqlResult, iterate } from '../support/graphql.client.js';

LeakGuard.install();

@Resolver()
@Authenticated()
class AccountResolver {
  static bell = new PubSub();

  @Query(() => String)
  orders() {
    return 'orders';
  }

  @Query(() => String)
  @Public()
  news() {
    return 'news';
  }

  @Mutation(() => Boolean)
  @RecentlyAuthenticated('5m')
  changePassword() {
    return true;
  }

  @Subscription(() => String)
  rung() {
    return AccountResolver.bell.asyncIterableIterator('rung');
  }
}

const apollo = () =>
  GraphQLModule.forRoot<ApolloDriverConfig>({
    driver: ApolloDriver,
    autoSchemaFile: true,
    subscriptions: { 'graphql-ws': true },
  });
const mercurius = () =>
  GraphQLModule.forRoot<MercuriusDriverConfig>({
    driver: MercuriusDriver,
    autoSchemaFile: true,
    subscription: { fullWsTransport: true },
  });

let redis: RedisServer;
let client: Redis;
let app: App;
let ada: HttpAgent;
let stranger: HttpAgent;

beforeAll(async () => {
  redis = await RedisServer.start();
  client = new Redis(redis.url);
});
afterAll(async () => {
  client.disconnect();
  await redis.stop();
});
afterEach(disposeClients);

/** The first error, without the place where it was thrown. */
function errorOf({ errors }: GraphqlResult): { readonly message?: string; readonly extensions?: Record<string, any> } {
  return errors?.[0] ?? {};
}

describe.each([
  { driver: 'Apollo on Express', adapter: 'express', graphql: apollo, isApollo: true },
  { driver: 'Apollo on Fastify', adapter: 'fastify', graphql: apollo, isApollo: true },
  { driver: 'Mercurius', adapter: 'fastify', graphql: mercurius, isApollo: false },
] as const)('GraphQL by $driver', ({ adapter, graphql, isApollo }) => {
  beforeAll(async () => {
    app = await App.start({
      adapter,
      redis: { url: redis.url, notifications: 'off' },
      imports: [graphql()],
      providers: [AccountResolver],
    });
  });
  afterAll(() => app.stop());
  beforeEach(async () => {
    ada = await signIn(app.nest, { principalName: 'ada' });
    stranger = await HttpAgent.for(app.nest);
  });

  async function signedInAgo(milliseconds: number): Promise<void> {
    const { id } = (await sessionOf(app.nest, ada))!;
    const [seconds] = await client.time();
    await client.hset(`nest:session:sessions:${id}`, 'authenticatedAt', Number(seconds) * 1000 - milliseconds);
  }

  it('guards resolvers, and refuses as the driver does', async () => {
    expect(await ask(ada, '{ orders news }')).toEqual({ data: { orders: 'orders', news: 'news' } });
    expect(await ask(stranger, '{ news }')).toEqual({ data: { news: 'news' } });
    const refused = await ask(stranger, '{ orders }');
    expect(refused.data ?? null).toBeNull();
    expect(errorOf(refused).message).toBe('Sign in first');
    if (isApollo) {
      expect(errorOf(refused).extensions).toMatchObject({
        code: 'UNAUTHENTICATED',
        originalError: { statusCode: 401, reason: 'not-authenticated' },
      });
    }
  });

  it('requires a recent sign-in by the clock of Redis', async () => {
    await signedInAgo(0);
    expect((await ask(ada, 'mutation { changePassword }')).data).toEqual({ changePassword: true });
    await signedInAgo(301_000);
    expect(errorOf(await ask(ada, 'mutation { changePassword }')).message).toBe('Sign in again');
  });

  it('guards operations over a connection, by the session as it is then', async () => {
    const connection = connect(ada);
    expect((await iterate(connection, '{ orders }').next()).value).toEqual({ data: { orders: 'orders' } });
    await app.nest
      .get<SessionRepository>(SessionRepository, { strict: false })
      .deleteById((await sessionOf(app.nest, ada))!.id);
    expect(errorOf((await iterate(connection, '{ orders }').next()).value as GraphqlResult).message).toBe(
      'Sign in first',
    );
    const said = await iterate(connect(stranger), 'subscription { rung }')
      .next()
      .then(
        ({ value }) => JSON.stringify(value),
        (error: unknown) => JSON.stringify(error),
      );
    expect(said).toContain('Sign in first');
  });
});
