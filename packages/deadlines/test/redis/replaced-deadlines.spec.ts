import { JsonAttributeSerializer } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { RequestConnection } from '../../../redis-events/src/connection/request.connection.js';
import { SingleNode } from '../../../redis-events/src/connection/redis-nodes.js';
import { RedisDeadlineStore } from '../../src/redis/redis-deadline.store.js';
import { DeadlineEncryption } from '../../src/redis/redis-deadline.options.js';
import type { PlainValues } from '../../../session-redis/src/encryption/session-encryption.js';
import { type DeadlineKeys, DeadlinePartitions, memberOf } from '../../src/redis/deadline-keys.js';
import { DeadlineScripts, type DeadlineToWrite } from '../../src/scripts/deadlines/deadline.scripts.js';
import { KeyRing } from '../../../session-redis/src/encryption/key-ring.js';
import { keyOf } from '../../../session-redis/test/support/encryption.fixture.js';
import { exactDump } from '../../../session-redis/test/support/exact.dump.js';
import { MINUTE } from '../../../session-redis/test/support/store.fixture.js';

LeakGuard.install();

const NAME = 'order.payment-due';
const KEY = '42';
const MEMBER = memberOf(NAME, KEY);
const HOUR = 60 * MINUTE;
// Not behind the clock, whenever the test runs.
const DUE = Date.now() + 100 * HOUR;
const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

let redis: RedisServer;
let client: Redis;
let scripts: DeadlineScripts;
let connection: RequestConnection;
let partitions: DeadlinePartitions;
let keys: DeadlineKeys;
beforeAll(async () => {
  redis = await RedisServer.start();
  client = new Redis(redis.url);
  scripts = new DeadlineScripts(client);
  connection = new RequestConnection(new SingleNode(client), { commandTimeout: 10 * MINUTE });
  partitions = new DeadlinePartitions('nest:deadlines', 4);
  keys = partitions.of(MEMBER);
});
beforeEach(() => client.flushall());
afterAll(async () => {
  client.disconnect();
  await redis.stop();
});

async function now(): Promise<number> {
  const [seconds, microseconds] = await client.time();
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
}

/** Until the clock of Redis is past the time at which a deadline was scheduled. */
async function untilLater(): Promise<number> {
  const at = Number(await client.hget(keys.deadline(MEMBER), 'at'));
  await eventually(async () => expect(await now()).toBeGreaterThan(at));
  return now();
}

/** What Redis has of all, and when the deadline says that it was scheduled. */
async function content(): Promise<{ readonly all: Record<string, unknown>; readonly at: number }> {
  const all = await exactDump(client);
  const hash = all[keys.deadline(MEMBER)] as { readonly content: Record<string, string> } | undefined;
  const at = Number(hash?.content['at']);
  if (hash) delete hash.content['at'];
  return { all, at };
}

describe('a deadline in the place of another one', () => {
  // Redis does not look into the data and their key.
  const DATA = {
    'no data': { text: undefined, dataKey: undefined },
    'plain data': { text: '{"total":5}', dataKey: undefined },
    'no text at all': { text: '', dataKey: undefined },
    'encrypted data': { text: 'AAAA', dataKey: '1:first' },
    'data that are encrypted otherwise': { text: 'BBBB', dataKey: '1:second' },
  };
  const VARIANTS = Object.entries(DATA).flatMap(([what, data]) => [
    { what, with: { data } },
    { what: `${what} and a trace`, with: { data, traceparent: TRACE } },
  ]);

  const schedule = async (what: Pick<DeadlineToWrite, 'data'>, due = DUE) => {
    const rest = { member: MEMBER, key: KEY, id: 'new', due: { at: due }, ifExists: 'replace' } as const;
    return (await scripts.schedule(keys, NAME, [{ ...rest, ...what }], 100)).replies;
  };

  const BEFORE = {
    waits: async (what: Pick<DeadlineToWrite, 'data'>) => {
      const rest = { member: MEMBER, key: KEY, id: 'old', due: { at: DUE + HOUR }, ifExists: 'replace' } as const;
      await scripts.schedule(keys, NAME, [{ ...rest, ...what }], 100);
    },
    'has fired': async (what: Pick<DeadlineToWrite, 'data'>) => {
      await schedule(what, 1);
      await client.hset(keys.wanted, 'default', NAME);
      const rules = { batchSize: 10, maxLength: 100, knownFor: HOUR, maxDeadLetterSize: 1_000_000 };
      expect((await scripts.fire(keys, rules)).entries).toMatchObject([{ outcome: 'claimed' }]);
      await client.del(keys.wanted, keys.events);
    },
    'was cancelled': async (what: Pick<DeadlineToWrite, 'data'>) => {
      await schedule(what);
      expect(await scripts.cancel(keys, NAME, MEMBER)).toBe('cancelled');
    },
  };

  it.each(Object.entries(BEFORE))('that %s is as if there had been none, whatever both have', async (_, begin) => {
    for (const later of VARIANTS) {
      await client.flushall();
      await schedule(later.with);
      const { all: fresh } = await content();
      for (const earlier of VARIANTS) {
        await client.flushall();
        await begin(earlier.with);
        const began = await untilLater();
        await schedule(later.with);
        const { all, at } = await content();
        expect([earlier.what, later.what, all]).toEqual([earlier.what, later.what, fresh]);
        expect(at).toBeGreaterThanOrEqual(began);
      }
    }
  });

  it.each(VARIANTS)('is as it was after another time and the first one again: $what', async ({ with: what }) => {
    await schedule(what);
    const before = await exactDump(client);
    await untilLater();
    for (const [time, word] of [
      [DUE + HOUR, 'moved'],
      [DUE, 'moved'],
    ] as const) {
      expect(await scripts.reschedule(keys, NAME, MEMBER, { at: time })).toMatchObject([word, expect.any(Number)]);
      expect(await client.zscore(keys.due(NAME), MEMBER)).toBe(`${time}`);
    }
    expect(await exactDump(client)).toEqual(before);
  });
});

describe('data of a deadline', () => {
  const RULES = {
    'no keys': [[], 'write'],
    'keys that are only known yet': [['a'], 'write'],
    'a key': [['a'], 'read'],
    'another first key': [['b', 'a'], 'read'],
    'plain data refused': [['b', 'a'], 'refuse'],
  } as const satisfies Record<string, readonly [ids: readonly string[], plainValues: PlainValues]>;
  type Rules = (typeof RULES)[keyof typeof RULES];

  /** An instance of an application with these options. */
  function instance([ids, plainValues]: Rules): RedisDeadlineStore {
    const all = ids.map((id) => ({ id, bytes: Buffer.from(keyOf(id).key, 'base64') }));
    const ring = new KeyRing(all, { kind: 'deadline', namespace: 'nest:deadlines' });
    return new RedisDeadlineStore(
      connection,
      () => scripts,
      partitions,
      { hurry: () => undefined },
      { serializer: new JsonAttributeSerializer(), encryption: new DeadlineEncryption({ ring, plainValues }) },
    );
  }

  const schedule = (by: RedisDeadlineStore, text: string | undefined) =>
    by.schedule(NAME, [{ key: KEY, id: text ?? 'none', due: { at: DUE }, text, ifExists: 'replace' }], 100);

  /** The key that encrypts what is stored; undefined: none. */
  async function keyOfStored(): Promise<string | undefined> {
    const [dataKey, data] = await client.hmget(keys.deadline(MEMBER), 'dataKey', 'data');
    expect(dataKey == null).toBe(data === '"second"');
    return dataKey?.split(':')[2];
  }

  const transitions = Object.entries(RULES).flatMap(([from, first]) =>
    Object.entries(RULES).map(([to, second]) => ({ from, to, first, second })),
  );
  it.each(transitions)('are readable after a change from $from to $to', async ({ first, second }) => {
    const [ids, plainValues] = second;
    const encrypts = plainValues !== 'write';
    for (const earlier of ['"first"', undefined]) {
      await client.flushall();
      await schedule(instance(first), earlier);
      expect(await schedule(instance(second), '"second"')).toEqual(['replaced']);
      expect(await keyOfStored()).toBe(encrypts ? ids[0] : undefined);
      const read = { key: KEY, id: '"second"', text: '"second"', dueAt: DUE };
      expect(await instance(second).get(NAME, KEY)).toMatchObject(read);
      expect(await instance(second).list(NAME, { before: undefined, after: undefined, limit: 10 })).toMatchObject([
        read,
      ]);
      await schedule(instance(second), undefined);
      expect(await instance(second).get(NAME, KEY)).toMatchObject({ text: undefined });
      expect(await client.hmget(keys.deadline(MEMBER), 'data', 'dataKey')).toEqual([null, null]);
    }
  });

  it('that are plain are refused only where that is asked for', async () => {
    await schedule(instance(RULES['keys that are only known yet']), '"plain"');
    expect(await instance(RULES['another first key']).get(NAME, KEY)).toMatchObject({ text: '"plain"' });
    await expect(instance(RULES['plain data refused']).get(NAME, KEY)).rejects.toThrow("is 'refuse'");
  });
});
