import dns from 'node:dns';
import { jest } from '@jest/globals';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Inject } from '@nestjs/common';
import {
  Field,
  GraphQLModule,
  Int,
  Mutation,
  ObjectType,
  Parent,
  Query,
  ResolveField,
  Resolver,
  Subscription,
} from '@nestjs/graphql';
import { MercuriusDriver, type MercuriusDriverConfig } from '@nestjs/mercurius';
import {
  KeepSessionIdle,
  Session,
  SessionAttribute,
  SessionContext,
  SessionId,
  SessionOutagePolicy,
} from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent, RedisServer, sessionOf, signIn } from '@nest-session/testing';
import { PubSub } from 'graphql-subscriptions';
import { App } from '../support/app.fixture.js';
import { ask, connect, disposeClients, iterate } from '../support/graphql.client.js';

LeakGuard.install();

@ObjectType()
class Visitor {
  @Field(() => String)
  id!: string;

  @Field(() => Int, { nullable: true })
  visits?: number;

  @Field(() => String, { nullable: true })
  name?: string;
}

@Resolver(() => Visitor)
class VisitorResolver {
  static bell = new PubSub();

  constructor(@Inject(SessionContext) private readonly context: SessionContext) {}

  @Query(() => Visitor)
  visitor(@SessionId() id: string) {
    return { id };
  }

  @Query(() => Boolean)
  isInContext(@Session() session: Session) {
    return this.context.session === session;
  }

  @Query(() => Boolean)
  @KeepSessionIdle()
  @SessionOutagePolicy('reject')
  poll() {
    return true;
  }

  @Mutation(() => Visitor)
  visit(@Session() session: Session) {
    session.setAttribute('visits', session.getAttributeOrDefault('visits', 0) + 1);
    return { id: session.id };
  }

  @Mutation(() => Boolean)
  fail(@Session() session: Session) {
    session.setAttribute('failed', true);
    throw new Error('The resolver fails on purpose');
  }

  @Mutation(() => String)
  rotate(@Session() session: Session) {
    return session.changeSessionId();
  }

  @Subscription(() => Visitor, { resolve: (rung: object) => rung })
  rung(@Session() session: Session, @SessionId() id: string, @SessionAttribute('visits') visits: number | undefined) {
    if (this.context.session !== session || session.id !== id) throw new Error('Not one session');
    session.setAttribute('subscribed', visits ?? 0);
    return VisitorResolver.bell.asyncIterableIterator('rung');
  }

  @ResolveField()
  visits(@SessionAttribute('visits') visits: number | undefined) {
    return visits;
  }

  @ResolveField()
  name(@Parent() _: Visitor, @Session() session: Session) {
    return session.principalName;
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
let app: App;
let agent: HttpAgent;

beforeAll(async () => {
  redis = await RedisServer.start();
});
afterAll(() => redis.stop());
afterEach(disposeClients);

describe.each([
  { driver: 'Apollo on Express', adapter: 'express', graphql: apollo },
  { driver: 'Apollo on Fastify', adapter: 'fastify', graphql: apollo },
  { driver: 'Mercurius', adapter: 'fastify', graphql: mercurius },
] as const)('GraphQL by $driver', ({ adapter, graphql }) => {
  beforeAll(async () => {
    app = await App.start({
      adapter,
      session: { touchInterval: 0 },
      redis: { url: redis.url, notifications: 'off' },
      imports: [graphql()],
      providers: [VisitorResolver],
    });
  });
  afterAll(() => app.stop());
  beforeEach(async () => {
    agent = await signIn(app.nest, { principalName: 'ada', attributes: { visits: 6 } });
  });

  it('has the session in resolvers and in resolvers of fields', async () => {
    const { id } = (await sessionOf(app.nest, agent))!;
    expect(await ask(agent, '{ visitor { id visits name } isInContext }')).toEqual({
      data: { visitor: { id, visits: 6, name: 'ada' }, isInContext: true },
    });
  });

  it('saves it before the response, and sends the cookie of a new one', async () => {
    agent.clearCookies();
    const { data } = await ask(agent, 'mutation { visit { id visits } }');
    expect(data).toEqual({ visit: { id: (await sessionOf(app.nest, agent))!.id, visits: 1 } });
    await ask(agent, 'mutation { rotate }');
    expect((await ask(agent, 'mutation { visit { visits } }')).data).toEqual({ visit: { visits: 2 } });
  });

  it('is renewed by a query, unless the resolver keeps it idle', async () => {
    const lastAccess = async () => (await sessionOf(app.nest, agent))!.lastAccessedTime;
    const created = await lastAccess();
    expect(await ask(agent, '{ poll }')).toEqual({ data: { poll: true } });
    expect(await lastAccess()).toBe(created);
    await eventually(async () => {
      await ask(agent, '{ visitor { name } }');
      expect(await lastAccess()).toBeGreaterThan(created);
    });
  });

  it('has it in a subscription, fresh for each event', async () => {
    const client = connect(agent);
    const events = iterate(client, 'subscription { rung { id visits name } }');
    const heard: unknown[] = [];
    const first = events.next().then(({ value }) => heard.push(value));
    // The first event may come before the subscription is there.
    await eventually(async () => {
      await VisitorResolver.bell.publish('rung', { id: '1' });
      expect(heard).toEqual([{ data: { rung: { id: '1', visits: 6, name: 'ada' } } }]);
    });
    await first;
    expect((await sessionOf(app.nest, agent))!.getAttribute('subscribed')).toBe(6);

    await ask(agent, 'mutation { visit { id } }');
    await VisitorResolver.bell.publish('rung', { id: '2' });
    await eventually(async () => {
      const { value } = (await events.next()) as { value: { data: { rung: { id: string; visits: number } } } };
      expect(value.data.rung).toEqual({ id: '2', visits: 7, name: 'ada' });
    });
    await events.return!();
  });

  it('saves what a mutation over a connection changes, and cannot start or rotate a session there', async () => {
    const client = connect(agent);
    expect((await iterate(client, 'mutation { visit { visits } }').next()).value).toEqual({
      data: { visit: { visits: 7 } },
    });
    expect((await sessionOf(app.nest, agent))!.getAttribute('visits')).toBe(7);
    const failed = await iterate(client, 'mutation { fail }').next();
    expect(failed.value).toMatchObject({ errors: [{ message: 'The resolver fails on purpose' }] });
    expect((await sessionOf(app.nest, agent))!.getAttribute('failed')).toBe(true);
    const refused = (await iterate(client, 'mutation { rotate }').next()).value as { errors: { message: string }[] };
    expect(refused.errors[0]!.message).toMatch(/over an open connection/);
  });

  it('refuses a subscription of a page from a foreign origin', async () => {
    const own = connect(agent, { origin: agent.origin });
    expect((await iterate(own, '{ visitor { name } }').next()).value).toEqual({ data: { visitor: { name: 'ada' } } });
    const client = connect(agent, { origin: 'https://evil.example' });
    const said = await iterate(client, 'subscription { rung { id name } }')
      .next()
      .then(
        ({ value }) => JSON.stringify(value),
        (error: unknown) => JSON.stringify(error),
      );
    expect(said).toContain('This page may not subscribe');
    expect(said).not.toContain('ada');
  });
});

describe.each([
  { driver: 'Apollo', graphql: apollo },
  { driver: 'Mercurius', graphql: mercurius },
])('GraphQL by $driver on each address of localhost, as Fastify listens by default', ({ graphql }) => {
  it('has the session over a connection', async () => {
    // As where localhost is 127.0.0.1 and ::1: Fastify has another server of Node.js for each.
    const { lookup } = dns;
    const all = [
      { address: '127.0.0.1', family: 4 },
      { address: '127.0.0.2', family: 4 },
    ];
    const spy = jest
      .spyOn(dns, 'lookup')
      .mockImplementation(((host: string, options: any, done: any) =>
        options.all ? done(null, all) : lookup(host, options, done)) as never);
    const started = await App.start({
      adapter: 'fastify',
      redis: { url: redis.url, notifications: 'off' },
      imports: [graphql()],
      providers: [VisitorResolver],
      host: 'localhost',
    });
    spy.mockRestore();
    const signedIn = await signIn(started.nest, { principalName: 'ada' });
    for (const { address } of all) {
      const origin = started.url.replace(/\/\/[^/]*(?=:\d)/, `//${address}`);
      const there = new HttpAgent(origin, { headers: { cookie: `SESSION=${signedIn.cookie('SESSION')}` } });
      expect(await ask(there, '{ visitor { name } }')).toEqual({ data: { visitor: { name: 'ada' } } });
      const { value } = await iterate(connect(there), '{ visitor { name } }').next();
      expect(value).toEqual({ data: { visitor: { name: 'ada' } } });
    }
    await disposeClients();
    await started.stop();
  });
});

it.each([
  { driver: 'Apollo', adapter: 'express', graphql: apollo },
  { driver: 'Mercurius', adapter: 'fastify', graphql: mercurius },
] as const)(
  'by $driver, tells the client why a resolver failed while the store is down',
  async ({ adapter, graphql }) => {
    const started = await App.start({
      adapter,
      redis: { url: redis.url, notifications: 'off', commandTimeout: '1s' },
      imports: [graphql()],
      providers: [VisitorResolver],
    });
    const signedIn = await signIn(started.nest, { principalName: 'ada' });
    redis.freeze();
    const { errors } = await ask(signedIn, 'mutation { visit { visits } }');
    redis.thaw();
    expect(errors).toMatchObject([{ message: 'Redis did not reply within 1000 ms' }]);
    await started.stop();
  },
);

it('says what to do when the GraphQL context has no request', async () => {
  const started = await App.start({
    redis: { url: redis.url, notifications: 'off' },
    imports: [
      GraphQLModule.forRoot<ApolloDriverConfig>({
        driver: ApolloDriver,
        autoSchemaFile: true,
        context: () => 'nothing' as never,
      }),
    ],
    providers: [VisitorResolver],
  });
  const { errors } = await ask(started.agent(), '{ isInContext }');
  expect(errors?.[0]?.message).toMatch(/return it in the option `context` of GraphQLModule\.forRoot\(\)/);
  await started.stop();
});

it.each(['express', 'fastify'] as const)(
  'gives nobody the session of another when requests share the GraphQL context, on %s',
  async (adapter) => {
    let shared: object | undefined;
    // As @nestjs/apollo 13 does where the option is an object.
    const context = (given: { req?: object }) => (shared ??= { req: given.req ?? given });
    const started = await App.start({
      adapter,
      redis: { url: redis.url, notifications: 'off' },
      imports: [GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true, context })],
      providers: [VisitorResolver],
    });
    const [ada, bob] = await Promise.all(
      ['ada', 'bob'].map((principalName) => signIn(started.nest, { principalName })),
    );
    expect(await ask(ada!, '{ visitor { name } }')).toEqual({ data: { visitor: { name: 'ada' } } });
    const { data, errors } = await ask(bob!, '{ visitor { name } }');
    expect(data).toBeNull();
    expect(errors?.[0]?.message).toMatch(/^The GraphQL context has a request that was answered already/);
    await started.stop();
  },
);
