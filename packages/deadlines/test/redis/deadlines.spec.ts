import { setTimeout as delay } from 'node:timers/promises';
import { Injectable, Logger, type ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { expect, it } from '@jest/globals';
import { InvalidSessionOptionsError, SessionModule, SessionRepository } from '@nest-session/core';
import {
  deadline,
  DeadlineBoundError,
  DeadlineEvent,
  DeadlineEvents,
  DeadlineModule,
  Deadlines,
  OnDeadline,
} from '@nest-session/deadlines';
import { LeakGuard, LogRecorder } from '@nest-session/test-infrastructure';
import { eventually, RedisCluster, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { Cleanup } from '../../../redis-events/src/cleanup/cleanup.job.js';
import { SweepCounter } from '../../../redis-events/src/cleanup/due.sweeper.js';
import { recordedPartitions } from '../../../redis-events/src/namespace/store-format.js';
import { DeadlineSweeper, RedisDeadlineModule } from '../../src/redis/redis-deadline.module.js';
import { type DeadlineKeys, DeadlinePartitions, memberOf } from '../../src/redis/deadline-keys.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { RedisSessionModule } from '../../../session-redis/src/redis-session.module.js';
import { keyOf } from '../../../session-redis/test/support/encryption.fixture.js';
import { ALL_RIGHTS } from '../../../session-redis/test/support/with-all-rights.js';

LeakGuard.install();

const due = deadline<{ total: number }>('order.payment-due');

@Injectable()
class Orders {
  readonly events: DeadlineEvent<typeof due>[] = [];

  @OnDeadline(due)
  unpaid(event: DeadlineEvent<typeof due>) {
    this.events.push(event);
  }
}

let redis: RedisServer;
let client: Redis;
beforeAll(async () => {
  redis = await RedisServer.start();
  client = new Redis(redis.url);
});
beforeEach(() => client.flushall());
afterAll(async () => {
  client.disconnect();
  await redis.stop();
});

function start(metadata: ModuleMetadata) {
  return NestFactory.createApplicationContext(
    { module: class {}, ...metadata },
    { logger: false, abortOnError: false },
  );
}

const connections = async (at = client) => {
  const list = (await at.client('LIST')) as string;
  return [...list.matchAll(/ name=(\S+:\S+) /g)].map(([, name]) => name!).toSorted();
};

it('without an address, shares the connections of RedisSessionModule, and both work until the last one ends', async () => {
  const app = await start({
    imports: [
      SessionModule.forRoot(),
      RedisSessionModule.forRoot({ url: redis.url, requireAtStart: true }),
      DeadlineModule.forRoot(),
      RedisDeadlineModule.forRoot({ requireAtStart: true }),
    ],
    providers: [Orders],
  });
  try {
    expect(await app.get(Deadlines).schedule(due, '42', { in: 0, data: { total: 5 } })).toBe('scheduled');
    await eventually(() => expect(app.get(Orders).events).toHaveLength(1));
    await app.get(SessionRepository).save(app.get(SessionRepository).createSession());
    const named = await connections();
    expect(named.filter((name) => name.startsWith('nest:deadlines:'))).toEqual(['nest:deadlines:reader']);
    expect(named).toEqual(expect.arrayContaining(['nest:session:background', 'nest:session:request']));
    // It is acknowledged after its handler.
    await eventually(async () =>
      expect(await client.xpending('nest:deadlines:events', 'default')).toEqual([0, null, null, null]),
    );
  } finally {
    await app.close();
  }
  await eventually(async () => expect(await connections()).toEqual([]));
});

it('without an address, shares the connections of RedisSessionModule to a Cluster', async () => {
  const cluster = await RedisCluster.start();
  const clients = cluster.nodes.map(({ url }) => new Redis(url));
  const named = async () => (await Promise.all(clients.map((node) => connections(node)))).flat();
  try {
    const app = await start({
      imports: [
        SessionModule.forRoot(),
        RedisSessionModule.forRoot({ cluster: { nodes: cluster.addresses }, ...ALL_RIGHTS, requireAtStart: true }),
        DeadlineModule.forRoot(),
        RedisDeadlineModule.forRoot({ requireAtStart: true }),
      ],
      providers: [Orders],
    });
    try {
      expect(await app.get(Deadlines).schedule(due, '42', { in: 0, data: { total: 5 } })).toBe('scheduled');
      await eventually(() => expect(app.get(Orders).events).toHaveLength(1));
      await app.get(SessionRepository).save(app.get(SessionRepository).createSession());
      const ofDeadlines = (await named()).filter((name) => name.startsWith('nest:deadlines:'));
      expect(new Set(ofDeadlines)).toEqual(new Set(['nest:deadlines:signals']));
    } finally {
      await app.close();
    }
    await eventually(async () => expect(await named()).toEqual([]));
  } finally {
    for (const each of clients) each.disconnect();
    await cluster.stop();
  }
});

it('warns that Redis may evict deadlines, in an application without sessions', async () => {
  const log = new LogRecorder();
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
  try {
    const module = {
      module: class {},
      imports: [DeadlineModule.forRoot(), RedisDeadlineModule.forRoot({ url: redis.url })],
    };
    const app = await NestFactory.createApplicationContext(module, { logger: log, abortOnError: false });
    await app.close();
    expect(
      log.matching(/may evict deadlines, which then never come: its maxmemory-policy is allkeys-lru/),
    ).toHaveLength(1);
    expect(log.matching(/sessions/)).toEqual([]);
  } finally {
    await client.config('SET', 'maxmemory-policy', 'noeviction');
  }
});

it('with an address, has connections of its own, also beside RedisSessionModule', async () => {
  const app = await start({
    imports: [
      SessionModule.forRoot(),
      RedisSessionModule.forRoot({ url: redis.url }),
      DeadlineModule,
      RedisDeadlineModule.forRoot({ url: redis.url }),
    ],
  });
  try {
    await app.get(Deadlines).schedule(due, '42', { in: '1h', data: { total: 5 } });
    expect(await connections()).toEqual(
      expect.arrayContaining(['nest:deadlines:background', 'nest:deadlines:request', 'nest:session:request']),
    );
  } finally {
    await app.close();
  }
});

it('refuses a namespace of sessions, and sessions one of deadlines', async () => {
  const sessions = [SessionModule.forRoot(), RedisSessionModule.forRoot({ url: redis.url, namespace: 'shop' })];
  const deadlines = [DeadlineModule.forRoot(), RedisDeadlineModule.forRoot({ url: redis.url, namespace: 'shop' })];
  await (await start({ imports: sessions })).close();
  await expect(start({ imports: deadlines })).rejects.toThrow(
    new InvalidSessionOptionsError('RedisDeadlineModule', [
      'The deadlines in namespace "shop" cannot be kept there, because it holds sessions: use another namespace for deadlines.',
    ]),
  );
  await client.flushall();
  await (await start({ imports: deadlines })).close();
  await expect(start({ imports: sessions })).rejects.toThrow('because it holds deadlines');
  // The commands that move sessions.
  await expect(recordedPartitions(client, new SessionPartitions('shop'))).rejects.toThrow('because it holds deadlines');
});

it('refuses another number of partitions than the recorded one', async () => {
  const imports = (partitions: number) => [
    DeadlineModule.forRoot(),
    RedisDeadlineModule.forRoot({ url: redis.url, partitions }),
  ];
  await (await start({ imports: imports(1) })).close();
  await expect(start({ imports: imports(2) })).rejects.toThrow(
    'The deadlines in namespace "nest:deadlines" are in 1 partition, but option `partitions` is 2. Set it to 1, or use another namespace.',
  );
});

it('leaves no connection open when the module fails to start whose connections it shares', async () => {
  const imports = (partitions: number) => [
    SessionModule.forRoot(),
    RedisSessionModule.forRoot({ url: redis.url, partitions }),
    DeadlineModule.forRoot(),
    RedisDeadlineModule.forRoot(),
  ];
  await (await start({ imports: imports(1) })).close();
  await expect(start({ imports: imports(2) })).rejects.toThrow('RedisSessionModule');
  await eventually(async () => expect(await connections()).toEqual([]));
});

it('says that the module of the store is missing, and that an option belongs to it', async () => {
  await expect(start({ imports: [DeadlineModule.forRoot()] })).rejects.toThrow('DeadlineModule: It has no store');
  const url = { url: redis.url } as object;
  await expect(start({ imports: [DeadlineModule.forRoot(url)] })).rejects.toThrow(
    'Unknown option `url`: it is an option of RedisDeadlineModule.forRoot()',
  );
  await expect(start({ imports: [RedisDeadlineModule] })).rejects.toThrow('write RedisDeadlineModule.forRoot()');
});

it('gives each partition its share of `maxScheduled`', async () => {
  const app = await start({
    imports: [
      DeadlineModule.forRoot({ maxScheduled: 40 }),
      RedisDeadlineModule.forRoot({ url: redis.url, partitions: 4 }),
    ],
  });
  try {
    const deadlines = app.get(Deadlines);
    const fill = async () => {
      for (let i = 0; i < 1000; i++) await deadlines.schedule(due, `${i}`, { in: '1h', data: { total: i } });
    };
    await expect(fill()).rejects.toThrow(DeadlineBoundError);
    expect(await deadlines.count(due)).toBeLessThanOrEqual(40);
    expect(Math.max(...(await Promise.all([0, 1, 2, 3].map((n) => countIn(n)))))).toBe(10);
  } finally {
    await app.close();
  }
});

async function countIn(partition: number): Promise<number> {
  const [key] = await client.keys(`nest:deadlines:{${partition}-*}:due:order.payment-due`);
  return key === undefined ? 0 : client.zcard(key);
}

it('has no key and no data of a deadline in clear, where they are encrypted, but its key', async () => {
  const app = await start({
    imports: [
      DeadlineModule.forRoot(),
      RedisDeadlineModule.forRoot({ url: redis.url, encryption: { keys: [keyOf('a')] } }),
    ],
    providers: [Orders],
  });
  try {
    const deadlines = app.get(Deadlines);
    await deadlines.schedule(due, 'ann@example.org', { in: '200ms', data: { total: 123_456_789 } });
    expect((await client.keys('*')).join(' ')).not.toContain('ann');
    const [hash] = await client.keys('nest:deadlines:deadlines:*');
    expect(JSON.stringify(await client.hgetall(hash!))).not.toContain('123456789');
    await eventually(() => expect(app.get(Orders).events[0]?.data).toEqual({ total: 123_456_789 }));
    expect(JSON.stringify(await client.xrange('nest:deadlines:events', '-', '+'))).not.toContain('123456789');
  } finally {
    await app.close();
  }
});

it('keeps a deadline whose data it cannot decrypt as a dead letter, which is handled when it can', async () => {
  const withKeys = (...ids: string[]) => ({
    imports: [
      DeadlineModule.forRoot(),
      RedisDeadlineModule.forRoot({
        url: redis.url,
        encryption: { keys: ids.map((id) => keyOf(id)) },
        events: { attempts: 1 },
      }),
    ],
    providers: [Reading],
  });
  const first = await start({ ...withKeys('old'), providers: [] });
  await first.get(Deadlines).schedule(due, '42', { in: 0, data: { total: 5 } });
  await first.close();
  const second = await start(withKeys('new'));
  try {
    await eventually(async () => expect(await second.get(DeadlineEvents).deadLetters()).toHaveLength(1));
    const [letter] = await second.get(DeadlineEvents).deadLetters();
    expect(letter!.reason).toContain('DeadlineDataError');
    expect(letter!.reason).toContain('The data of a deadline "order.payment-due" cannot be decrypted');
    expect(letter!.reason).toContain('A deadline is encrypted under the key');
    expect(letter!.event?.key).toBe('42');
  } finally {
    await second.close();
  }
  const third = await start(withKeys('new', 'old'));
  try {
    expect(await third.get(DeadlineEvents).replayAll()).toBe(1);
    await eventually(() => expect(third.get(Reading).totals).toEqual([5]));
  } finally {
    await third.close();
  }
});

@Injectable()
class Reading {
  readonly totals: number[] = [];

  @OnDeadline(due)
  unpaid({ data }: DeadlineEvent<typeof due>) {
    this.totals.push(data.total);
  }
}

it.each([
  ['a stray key in the place of its hash', (hash: string) => client.set(hash, 'x'), 'is a string, not a hash'],
  ['no hash', (hash: string) => client.del(hash), 'the deadline of this member is lost'],
])('makes a dead letter of a member with %s, and fires the others', async (_, spoil, reason) => {
  const app = await start({
    imports: [DeadlineModule.forRoot(), RedisDeadlineModule.forRoot({ url: redis.url })],
    providers: [Orders],
  });
  try {
    const deadlines = app.get(Deadlines);
    await deadlines.schedule(due, '42', { in: '300ms', data: { total: 5 } });
    const [hash] = await client.keys('nest:deadlines:deadlines:*');
    await client.del(hash!);
    await spoil(hash!);
    await deadlines.schedule(due, '43', { in: '300ms', data: { total: 6 } });
    await eventually(() => expect(app.get(Orders).events.map(({ key }) => key)).toEqual(['43']));
    const [letter] = await app.get(DeadlineEvents).deadLetters();
    expect(letter).toMatchObject({ event: undefined, group: undefined });
    expect(letter!.reason).toContain(reason);
    expect(letter!.reason).not.toContain(hash!.slice(-20));
  } finally {
    await app.close();
  }
});

it('fires nothing while as many events wait for their groups as `events.maxLength` allows, and loses nothing', async () => {
  const orders = (consume: boolean) => ({
    imports: [
      DeadlineModule.forRoot(),
      RedisDeadlineModule.forRoot({ url: redis.url, events: { maxLength: 5, consume } }),
    ],
    providers: [Orders],
  });
  await (await start(orders(true))).close();
  const silent = await start(orders(false));
  try {
    const deadlines = silent.get(Deadlines);
    const schedule = async (from: number) =>
      deadlines.scheduleMany(
        due,
        Array.from({ length: 10 }, (_, i) => ({ key: `${from + i}`, in: 0 as const, data: { total: i } })),
      );
    await schedule(0);
    await eventually(async () => expect(await deadlines.count(due)).toBe(0));
    await schedule(10);
    // Longer than an instance waits until it looks again.
    await delay(1500);
    expect(await deadlines.count(due)).toBe(10);
    // One call fires several, so there are more than five. No cleanup makes room by removing what nobody has handled.
    await silent.get(Cleanup, { strict: false }).run(10_000, new AbortController().signal);
    expect(await client.xlen('nest:deadlines:events')).toBe(10);
  } finally {
    await silent.close();
  }
  const last = await start(orders(true));
  try {
    const { events } = last.get(Orders);
    await eventually(() => expect(events).toHaveLength(10));
    // What is handled makes room when it is trimmed. That takes a minute, so the test does it.
    await client.xtrim('nest:deadlines:events', 'MAXLEN', 0);
    await eventually(() => {
      expect(new Set(events.map(({ key }) => key)).size).toBe(20);
    });
  } finally {
    await last.close();
  }
});

it('logs once that deadlines wait for groups, although other partitions have room', async () => {
  const log = new LogRecorder();
  const options = { url: redis.url, partitions: 2, events: { maxLength: 2, consume: true } };
  const metadata = (events: typeof options.events) => ({
    imports: [DeadlineModule.forRoot(), RedisDeadlineModule.forRoot({ ...options, events })],
    providers: [Orders],
  });
  await (await start(metadata(options.events))).close();
  const app = await start(metadata({ ...options.events, consume: false }));
  try {
    Logger.overrideLogger(log);
    const deadlines = app.get(Deadlines);
    const partitions = app.get(DeadlinePartitions, { strict: false });
    const keys = Array.from({ length: 20 }, (_, i) => `${i}`);
    const [first, other] = keys.filter((key) => partitions.of(memberOf(due.name, key)) === partitions.all[0]);
    const fire = (partition: DeadlineKeys) =>
      app.get(DeadlineSweeper, { strict: false }).sweep([partition], new SweepCounter(false), {});
    await deadlines.schedule(due, first!, { in: 0, data: { total: 1 } });
    await eventually(async () => expect(await deadlines.count(due)).toBe(0));
    await deadlines.schedule(due, other!, { in: 0, data: { total: 1 } });
    for (let i = 0; i < 3; i++) for (const partition of partitions.all) await fire(partition);
    expect(log.matching(/Deadlines wait longer than they should/)).toHaveLength(1);
    expect(await deadlines.count(due)).toBe(1);
  } finally {
    await app.close();
  }
});

it('fires on when there are only broadcast handlers, and keeps about as many events as `events.maxLength` allows', async () => {
  @Injectable()
  class Caches {
    readonly keys: string[] = [];

    @OnDeadline(due, { broadcast: true })
    forget({ key }: DeadlineEvent<typeof due>) {
      this.keys.push(key);
    }
  }
  const app = await start({
    imports: [DeadlineModule.forRoot(), RedisDeadlineModule.forRoot({ url: redis.url, events: { maxLength: 60 } })],
    providers: [Caches],
  });
  try {
    const { keys } = app.get(Caches);
    for (let heard = 100; heard <= 300; heard += 100) {
      const all = Array.from({ length: 100 }, (_, i) => ({ key: `${heard + i}`, in: 0 as const, data: { total: i } }));
      await app.get(Deadlines).scheduleMany(due, all);
      await eventually(() => expect(keys).toHaveLength(heard));
    }
    expect(new Set(keys).size).toBe(300);
    // A call fires up to 50.
    expect(await client.xlen('nest:deadlines:events')).toBeLessThanOrEqual(60 + 50);
  } finally {
    await app.close();
  }
});
