import { jest } from '@jest/globals';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import {
  Field,
  GraphQLModule,
  Mutation,
  ObjectType,
  Query,
  ResolveField,
  Resolver,
  Subscription,
} from '@nestjs/graphql';
import { Module, type Type, UseGuards } from '@nestjs/common';
import { MercuriusDriver, type MercuriusDriverConfig } from '@nestjs/mercurius';
import {
  Authenticated,
  AuthenticatedGuard,
  Public,
  RecentlyAuthenticated,
  SessionRepository,
} from '@nest-session/core';
import { OpenConnections } from '@nest-session/core/internal';
import { beginRequest, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent, RedisServer, sessionOf, signIn } from '@nest-session/testing';
import { PubSub } from 'graphql-subscriptions';
import { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';
import { commandStats } from '../support/command.stats.js';
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

  @Subscription(() => String)
  @Public()
  shown() {
    return AccountResolver.bell.asyncIterableIterator('shown');
  }
}

@ObjectType()
class Employee {
  @Field()
  name!: string;
}

@Resolver(() => Employee)
class EmployeeResolver {
  @Query(() => Employee)
  employee() {
    return { name: 'ada' };
  }

  @ResolveField(() => String)
  @Authenticated()
  salary() {
    return 'secret';
  }
}

const apollo = (options: Partial<ApolloDriverConfig> = {}) =>
  GraphQLModule.forRoot<ApolloDriverConfig>({
    driver: ApolloDriver,
    autoSchemaFile: true,
    subscriptions: { 'graphql-ws': true },
    ...options,
  });
const mercurius = (options: Partial<MercuriusDriverConfig> = {}) =>
  GraphQLModule.forRoot<MercuriusDriverConfig>({
    driver: MercuriusDriver,
    autoSchemaFile: true,
    subscription: { fullWsTransport: true },
    ...options,
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
      imports: [graphql({ fieldResolverEnhancers: ['guards'] })],
      providers: [AccountResolver, EmployeeResolver],
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
    expect(errorOf(refused).extensions).toMatchObject({ reason: 'not-authenticated' });
    if (isApollo) {
      expect(errorOf(refused).extensions).toMatchObject({
        code: 'UNAUTHENTICATED',
        originalError: { statusCode: 401, reason: 'not-authenticated' },
      });
    }
  });

  it('guards a field', async () => {
    expect(await ask(ada, '{ employee { salary } }')).toEqual({ data: { employee: { salary: 'secret' } } });
    expect(await ask(stranger, '{ employee { name } }')).toEqual({ data: { employee: { name: 'ada' } } });
    const refused = await ask(stranger, '{ employee { salary } }');
    expect([refused.data ?? null, errorOf(refused).message]).toEqual([null, 'Sign in first']);
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

  /** Asks until the first event has come; then `next` is the promise of the next one, or of the end. */
  async function subscribed(agent: HttpAgent, event: string) {
    const events = iterate(connect(agent), `subscription { ${event} }`);
    const outcome = (result: Promise<IteratorResult<GraphqlResult>>) =>
      result.then(
        ({ value, done }) => (done ? 'ended' : (value as GraphqlResult).data),
        () => 'cut',
      );
    const first = outcome(events.next());
    let hasCome = false;
    void first.then(() => (hasCome = true));
    await eventually(async () => {
      await AccountResolver.bell.publish(event, { [event]: 'first' });
      expect(hasCome).toBe(true);
    });
    expect(await first).toEqual({ [event]: 'first' });
    const drained = async () => {
      await AccountResolver.bell.publish(event, { [event]: 'last' });
      for (;;) {
        const next = await outcome(events.next());
        if (typeof next === 'string' || next?.[event] === 'last') return next;
      }
    };
    return { drained };
  }

  it('ends a subscription with the session, without another package, and leaves what is public', async () => {
    const open = await subscribed(ada, 'shown');
    const { drained } = await subscribed(ada, 'rung');
    const { id } = (await sessionOf(app.nest, ada))!;
    await app.nest.get(SessionRepository, { strict: false }).deleteById(id);
    await eventually(async () => expect(await drained()).toBe('cut'));
    expect(await open.drained()).toEqual({ shown: 'last' });
  });

  it('lets a subscription go on after a rotation by the same user, until the session ends', async () => {
    const { drained } = await subscribed(ada, 'rung');
    const session = (await sessionOf(app.nest, ada))!;
    session.changeSessionId();
    await session.save();
    const connections = app.nest.get(OpenConnections, { strict: false });
    await eventually(() => expect(connections.ids).toEqual([session.id]));
    expect(await drained()).toEqual({ rung: 'last' });
    await app.nest.get(SessionRepository, { strict: false }).deleteById(session.id);
    await eventually(async () => expect(await drained()).toBe('cut'));
    await eventually(() => expect(connections.ids).toEqual([]));
  });

  it('refuses a request that began before its session ended', async () => {
    const { id } = (await sessionOf(app.nest, ada))!;
    await client.config('RESETSTAT');
    const finish = beginRequest(ada, '/graphql', {}, JSON.stringify({ query: '{ orders }' }));
    await eventually(async () => expect((await commandStats(client)).get('pttl')?.calls).toBe(1));
    const now = performance.now.bind(performance);
    await app.nest.get(SessionRepository, { strict: false }).deleteById(id);
    jest.spyOn(performance, 'now').mockImplementation(() => now() + 1001);
    const { body } = await finish();
    jest.restoreAllMocks();
    expect(errorOf(body as GraphqlResult).message).toBe('Sign in first');
  });
});

describe('a field, for which Nest calls no guards,', () => {
  @Resolver(() => Employee)
  class NamedResolver {
    @ResolveField(() => String)
    @UseGuards(AuthenticatedGuard)
    salary() {
      return 'secret';
    }
  }

  @Resolver(() => Employee)
  @RecentlyAuthenticated('5m')
  class ClosedResolver {
    @Query(() => Employee)
    employee() {
      return { name: 'ada' };
    }

    @ResolveField(() => String)
    salary() {
      return 'secret';
    }

    @ResolveField(() => String)
    @Public()
    title() {
      return 'countess';
    }
  }

  @Resolver(() => Employee)
  @Public()
  class OpenResolver {
    @Query(() => Employee)
    @Authenticated()
    employee() {
      return { name: 'ada' };
    }

    @ResolveField(() => String)
    title() {
      return 'countess';
    }
  }

  const redisOptions = () => ({ url: redis.url, notifications: 'off' }) as const;
  const start = (providers: Type[], options?: Partial<ApolloDriverConfig>) =>
    App.start({ redis: redisOptions(), imports: [apollo(options)], providers });

  it.each<[string, Type, Partial<ApolloDriverConfig>]>([
    ['EmployeeResolver.salary', EmployeeResolver, {}],
    ['NamedResolver.salary', NamedResolver, { fieldResolverEnhancers: ['interceptors'] }],
    ['ClosedResolver.salary', ClosedResolver, {}],
  ])('keeps the application from starting if it looks protected: %s', async (name, resolver, options) => {
    await expect(start([AccountResolver, resolver], options)).rejects.toThrow(
      `SessionModule: ${name} would be open to everyone, because Nest calls no guards for a field, ` +
        'neither its own nor those of its class. ' +
        "Set `fieldResolverEnhancers: ['guards']` in GraphQLModule.forRoot(), or mark the field @Public().",
    );
  });

  it('may be public beside what is protected', async () => {
    app = await start([OpenResolver]);
    ada = await signIn(app.nest, { principalName: 'ada' });
    expect(await ask(ada, '{ employee { title } }')).toEqual({ data: { employee: { title: 'countess' } } });
    await app.stop();
  });

  it('counts only where a GraphQL module serves it', async () => {
    @Module({ providers: [EmployeeResolver] })
    class ImportedModule {}
    @Module({ imports: [ImportedModule] })
    class StaffModule {}
    @Module({ providers: [AccountResolver] })
    class AccountModule {}
    const imports = (include: Type) => [apollo({ include: [include] }), StaffModule, AccountModule];
    app = await App.start({ redis: redisOptions(), imports: imports(AccountModule) });
    expect(await ask(await HttpAgent.for(app.nest), '{ news }')).toEqual({ data: { news: 'news' } });
    await app.stop();
    await expect(App.start({ redis: redisOptions(), imports: imports(StaffModule) })).rejects.toThrow(
      'EmployeeResolver.salary would be open',
    );
  });
});
