import { Injectable, Module } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { MapSessionModule, SessionModule, SessionRepository } from '@nest-session/core';
import { DeadlineModule } from '@nest-session/deadlines';
import {
  RedisSessionModule,
  type RedisSessionModuleOptions,
  type RedisSessionOptionsFactory,
  RedisSessionRepository,
} from '@nest-session/redis';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, freePort, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { LivingInstances } from '../../../redis-events/src/namespace/living-instances.js';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

let server: RedisServer;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());

const HOOKS = [
  'onModuleInit',
  'onApplicationBootstrap',
  'onModuleDestroy',
  'beforeApplicationShutdown',
  'onApplicationShutdown',
] as const;

it.each<[string, RedisSessionModuleOptions]>([
  ['buckets', {}],
  ['a sorted set in partitions', { expirations: 'sorted-set', partitions: 2 }],
])('Nest calls the hooks of each service once: %s', async (_, options) => {
  const sessions = [SessionModule.forRoot(), RedisSessionModule.forRoot({ url: server.url, ...options })];
  const deadlines = [DeadlineModule.forRoot(), RedisDeadlineModule.forRoot({ url: server.url })];
  const app = await Test.createTestingModule({ imports: [...sessions, ...deadlines] }).compile();
  try {
    const wrappers = [...app.get(ModulesContainer, { strict: false }).values()].flatMap(({ providers }) => [
      ...providers.values(),
    ]);
    const names = new Map<object, string[]>();
    for (const { instance, isAlias, name } of wrappers as { instance: any; isAlias?: boolean; name: unknown }[]) {
      if (isAlias || !HOOKS.some((hook) => typeof instance?.[hook] === 'function')) continue;
      names.set(instance, [...(names.get(instance) ?? []), String(name)]);
    }
    expect(names.size).toBeGreaterThan(3);
    expect([...names.values()].filter(({ length }) => length > 1)).toEqual([]);
  } finally {
    await app.close();
  }
});

describe('configuration', () => {
  class Factory implements RedisSessionOptionsFactory {
    createRedisSessionOptions(): RedisSessionModuleOptions {
      return { url: server.url, namespace: 'from:factory', commandTimeout: '1m' };
    }
  }
  Injectable()(Factory);
  class FactoryModule {}
  Module({ providers: [Factory], exports: [Factory] })(FactoryModule);

  it.each([
    ['useFactory', { useFactory: async () => new Factory().createRedisSessionOptions() }],
    ['useClass', { useClass: Factory }],
    ['useExisting', { useExisting: Factory, imports: [FactoryModule] }],
  ])('is read by forRootAsync with %s', async (_, options) => {
    const imports = [SessionModule.forRoot(), RedisSessionModule.forRootAsync(options)];
    const app = await Test.createTestingModule({ imports }).compile();
    await app.init();
    try {
      const session = app.get(SessionRepository).createSession();
      session.setAttribute('a', 1);
      await session.save();
      const client = new Redis(server.url);
      expect(await client.exists(`from:factory:sessions:${session.id}`)).toBe(1);
      client.disconnect();
    } finally {
      await app.close();
    }
  });

  it('reports all problems in one error, with the option names that were probably meant', async () => {
    const options = {
      url: 'localhost:6379',
      namespce: 'x',
      namespace: 'a{b}',
      grace: 300,
      commandTimeout: '1 second',
      cleanup: { cron: 'every minute', batchSize: 0 },
      partitions: 1025,
      events: { retention: '1s', deadLetters: { retention: '1s', maxBytes: 1 } },
      notifications: 'on',
    } as unknown as RedisSessionModuleOptions;
    const imports = [SessionModule.forRoot(), RedisSessionModule.forRoot(options)];
    const error: unknown = await Test.createTestingModule({ imports })
      .compile()
      .then(undefined, (e: unknown) => e);
    const { message } = error as Error;
    for (const part of [
      '`url` must be a redis:// or rediss:// url',
      '`namespce`: known are',
      '`namespace` must not contain',
      "`grace` is the bare number 300: name its unit, such as '300s'",
      '`commandTimeout` is not a duration',
      '`cleanup.cron` is not a cron expression',
      '`cleanup.batchSize` must be a whole number from 1 to 1000',
      '`partitions` must be a whole number from 1 to 1024',
      '`events.deadLetters.retention` is 1s: it must be at least 1m',
      '`events.deadLetters.maxBytes`: known are',
      '`notifications` must be one of "auto", "off"',
    ]) {
      expect(message).toContain(part);
    }
  });

  it.each(['0 0 0 30 2 *', '0 0 0 31 4,6,9,11 *'])('rejects a cron expression that names no day: %s', async (cron) => {
    const imports = [SessionModule.forRoot(), RedisSessionModule.forRoot({ url: server.url, cleanup: { cron } })];
    await expect(Test.createTestingModule({ imports }).compile()).rejects.toThrow(
      'Option `cleanup.cron` names a time that never comes, such as the 30th of February.',
    );
  });

  it('rejects a client with a key prefix, which scripts would not apply', async () => {
    const client = new Redis(server.url, { keyPrefix: 'app:', lazyConnect: true });
    const imports = [SessionModule.forRoot(), RedisSessionModule.forRoot({ client })];
    await expect(Test.createTestingModule({ imports }).compile()).rejects.toThrow('keyPrefix');
  });

  it.each([
    ['forRoot()', () => RedisSessionModule.forRoot({ url: server.url })],
    ['forRootAsync()', () => RedisSessionModule.forRootAsync({ useFactory: async () => ({ url: server.url }) })],
  ])('reports a missing SessionModule beside %s', async (_, redis) => {
    await expect(Test.createTestingModule({ imports: [redis()] }).compile()).rejects.toMatchObject({
      name: 'InvalidSessionOptionsError',
      problems: ['SessionModule is missing: add SessionModule.forRoot() to the imports of the root module.'],
    });
  });

  it.each([
    ['as a class', [SessionModule.forRoot(), RedisSessionModule], 'write RedisSessionModule.forRoot() in the imports'],
    [
      'without the module that exports what it injects',
      [
        SessionModule.forRoot(),
        FactoryModule,
        RedisSessionModule.forRootAsync({
          inject: [Factory],
          useFactory: (factory: Factory) => factory.createRedisSessionOptions(),
        }),
      ],
      'injects Factory, but Nest cannot find it: write forRootAsync({ imports: [FactoryModule], ... })',
    ],
    [
      'with a factory that fails',
      [
        SessionModule.forRoot(),
        RedisSessionModule.forRootAsync({ useFactory: () => Promise.reject(new Error('No configuration')) }),
      ],
      'No configuration',
    ],
  ])('says what to write when it is imported %s', async (_, imports, sentence) => {
    await expect(Test.createTestingModule({ imports }).compile()).rejects.toThrow(sentence);
  });

  it('reports a missing store', async () => {
    const app = await Test.createTestingModule({ imports: [SessionModule.forRoot()] }).compile();
    await expect(app.init()).rejects.toThrow(/RedisSessionModule.*MapSessionModule/);
  });

  it('is refused beside another store, before it connects', async () => {
    const redis = RedisSessionModule.forRoot({ url: 'redis://127.0.0.1:1', requireAtStart: true });
    const app = Test.createTestingModule({ imports: [SessionModule.forRoot(), redis, MapSessionModule.forRoot()] });
    await expect(app.compile()).rejects.toThrow('stores for the sessions: RedisSessionModule and MapSessionModule');
  });

  it('can be replaced by another store in a test', async () => {
    const imports = [SessionModule.forRoot(), MapSessionModule.forRoot()];
    const app = await Test.createTestingModule({ imports }).compile();
    expect(app.get(SessionRepository)).not.toBeInstanceOf(RedisSessionRepository);
    await app.close();
  });
});

describe('an application', () => {
  it('starts without Redis, serves routes without sessions, and has sessions once Redis is up', async () => {
    const port = await freePort();
    const app = await App.start({ redis: { url: `redis://127.0.0.1:${port}`, commandTimeout: '300ms' } });
    let late: RedisServer | undefined;
    try {
      const agent = app.agent();
      expect((await agent.get('/plain')).status).toBe(200);
      expect((await agent.post('/set/a', { value: 1 })).status).toBe(503);
      late = await RedisServer.start({ port });
      // Retries when the short command timeout has passed on a slow machine.
      const { id } = await eventually(async () => {
        const response = await agent.post('/set/a', { value: 1 });
        expect(response.status).toBe(201);
        return response.json<{ id: string }>();
      });
      await eventually(async () => expect((await agent.post('/logout')).status).toBe(201));
      await app.events.next('deleted', id);
    } finally {
      await app.stop();
      await late?.stop();
    }
  });

  it('does not start without Redis when requireAtStart is true', async () => {
    const redis = { url: `redis://127.0.0.1:${await freePort()}`, requireAtStart: true };
    await expect(App.start({ redis })).rejects.toMatchObject({
      message: expect.stringMatching(/option `requireAtStart` is set: .*connect ECONNREFUSED 127/) as string,
      cause: { code: 'ECONNREFUSED' },
    });
  });

  it('does not start without its Cluster when requireAtStart is true', async () => {
    const cluster = { nodes: [{ host: '127.0.0.1', port: await freePort() }] };
    await expect(App.start({ redis: { cluster, requireAtStart: true } })).rejects.toThrow(
      /option `requireAtStart` is set: .*connect ECONNREFUSED 127/,
    );
  });

  it('does not start on data of another format version', async () => {
    const client = new Redis(server.url);
    await client.hset('other:meta', 'version', '99');
    client.disconnect();
    await expect(App.start({ redis: { url: server.url, namespace: 'other' } })).rejects.toMatchObject({
      name: 'InvalidSessionOptionsError',
      problems: [expect.stringContaining('have format 99')],
    });
  });

  it('does not start when Redis replies with an error, but does start when it does not reply', async () => {
    const client = new Redis(server.url);
    await client.set('foreign:meta', '');
    client.disconnect();
    const app = App.start({ redis: { url: server.url, namespace: 'foreign' } });
    await expect(app).rejects.toThrow('WRONGTYPE');
  });

  it('does not start with another number of partitions, and its error names both numbers', async () => {
    const redis = { url: server.url, namespace: 'partitioned' };
    await (await App.start({ redis: { ...redis, partitions: 4 } })).stop();
    await (await App.start({ redis: { ...redis, partitions: 4 } })).stop();
    await expect(App.start({ redis })).rejects.toMatchObject({
      name: 'InvalidSessionOptionsError',
      problems: [expect.stringMatching(/in 4 partitions, but option `partitions` is 1\. Set it to 4/)],
    });
  });

  it('records the partitions again in a Redis that has lost its data, where another number is then refused', async () => {
    const own = await RedisServer.start();
    const app = await App.start({ redis: { url: own.url } });
    const client = new Redis(own.url);
    client.on('error', () => undefined);
    const isRefused = () =>
      expect(App.start({ redis: { url: own.url, partitions: 4 } })).rejects.toMatchObject({
        problems: [expect.stringMatching(/in 1 partition, but option `partitions` is 4/)],
      });
    try {
      await client.flushall();
      await app.nest.get(LivingInstances, { strict: false }).runOnce();
      await isRefused();
      await own.kill();
      await own.restart();
      await eventually(async () => expect(await client.hget('nest:session:meta', 'partitions')).toBe('1'));
      await isRefused();
    } finally {
      await app.stop();
      client.disconnect();
      await own.stop();
    }
  });

  it('starts on a Redis that is out of memory when another instance has started before', async () => {
    const own = await RedisServer.start();
    const client = new Redis(own.url);
    await (await App.start({ redis: { url: own.url } })).stop();
    await client.config('SET', 'maxmemory', '1');
    const app = await App.start({ redis: { url: own.url } });
    expect((await app.agent().get('/plain')).status).toBe(200);
    await app.stop();
    client.disconnect();
    await own.stop();
  });

  it('finishes and saves the requests in flight before it closes its connections', async () => {
    const app = await App.start({ redis: { url: server.url } });
    const agent = app.agent();
    await agent.post('/set/first', { value: 1 });
    const { id } = (await agent.get('/read')).json() as { id: string };
    const slow = app.slow(agent, 'flight');
    await slow.gate.reached();
    const stopped = app.stop();
    slow.gate.open();
    expect((await slow.response).status).toBe(201);
    await stopped;
    const client = new Redis(server.url);
    expect(await client.hget(`nest:session:sessions:${id}`, 'sessionAttr:flight')).toBe('"late"');
    client.disconnect();
  });

  it('shuts down although Redis has stopped or does not reply', async () => {
    const own = await RedisServer.start();
    const apps = [await App.start({ redis: { url: own.url } }), await App.start({ redis: { url: own.url } })] as const;
    await apps[0].agent().post('/set/a', { value: 1 });
    own.freeze();
    await apps[0].stop();
    own.thaw();
    await own.kill();
    await apps[1].stop();
    await own.stop();
  }, 60_000);

  it('reports at its start the sessions that expired while no instance was running', async () => {
    const options = { redis: { url: server.url, namespace: 'catch:up' } };
    const before = await App.start({ redis: { ...options.redis, notifications: 'off' }, handlers: false });
    const { id } = (await before.agent().post('/set/cart', { value: ['apple'] })).json() as { id: string };
    await before.stop();
    const client = new Redis(server.url);
    // As if the minute of its bucket had passed.
    const [minute] = await client.zrangebyscore('catch:up:expirations', '-inf', '+inf');
    await client.rename(`catch:up:expirations:${minute}`, 'catch:up:expirations:60000');
    await client.del('catch:up:expirations');
    await client.zadd('catch:up:expirations', 60000, '60000');
    await client.hset(`catch:up:sessions:${id}`, 'bucket', '60000');
    await client.del(`catch:up:sessions:expires:${id}`);
    client.disconnect();
    const after = await App.start(options);
    const event = await after.events.next('expired', id);
    expect(event.session.getAttribute('cart')).toEqual(['apple']);
    await after.stop();
  });

  it('receives expired notifications again after Redis restarted without its settings', async () => {
    const own = await RedisServer.start({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
    const app = await App.start({ session: { timeout: '1s' }, redis: { url: own.url } });
    try {
      await own.kill();
      await own.restart();
      const agent = app.agent();
      const { id } = await eventually(async () => {
        const response = await agent.post('/set/cart', { value: ['pear'] });
        expect(response.status).toBe(201);
        return response.json<{ id: string }>();
      });
      const event = await app.events.next('expired', id);
      expect(event.session.getAttribute('cart')).toEqual(['pear']);
      expect(app.events.count('expired', id)).toBe(1);
    } finally {
      await app.stop();
      await own.stop();
    }
  });
});
