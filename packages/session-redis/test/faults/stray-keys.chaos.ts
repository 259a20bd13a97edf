import { Logger } from '@nestjs/common';
import { jest } from '@jest/globals';
import { LeakGuard } from '@nest-session/test-infrastructure';
import fc from 'fast-check';
import type { ExpirationStoreName } from '../../src/configuration/expirations.options.js';
import { SessionExpirationSweeper } from '../../src/expiration/session-expiration.sweeper.js';
import { BackgroundLimiter } from '../../../redis-events/src/timing/background.limiter.js';
import { MINUTE, type SteppableStore, Store } from '../support/store.fixture.js';

LeakGuard.install();
Logger.overrideLogger(false);

const HOUR = 60 * MINUTE;

const STORES = ['buckets', 'sorted-set'] as const;

let store: SteppableStore;
let sweeper: SessionExpirationSweeper;
function useStore(expirations: ExpirationStoreName): void {
  beforeAll(async () => {
    store = await Store.openSteppable({ expirations });
    // The sessions that a test creates belong to the same minute.
    await store.server.stopClock();
  });
  afterAll(() => store.close());
  beforeEach(async () => {
    await store.client.flushall();
    sweeper = newSweeper();
  });
}
afterEach(() => {
  jest.restoreAllMocks();
});

function newSweeper(): SessionExpirationSweeper {
  const [options, limiter] = [{ batchSize: 100 }, new BackgroundLimiter()];
  return new SessionExpirationSweeper(store.client, store.scripts, store.partitions, options, limiter);
}
const sweep = (instance = sweeper) => instance.runOnce({ ahead: 3 * HOUR });
const bucketOf = async (id: string) => (await store.buckets(id))[0]!;
const many = (count: number) => Promise.all(Array.from({ length: count }, () => store.create({ a: '1' })));

interface Fault {
  readonly name: string;
  /** Plants a stray key or member in place of a key of the session; the expected dead letter. */
  readonly plant: (id: string) => Promise<string>;
  /** The events of that session in the end. */
  readonly recorded: readonly string[];
  /** The only one where this can happen. */
  readonly only?: ExpirationStoreName;
}

const FAULTS: readonly Fault[] = [
  {
    name: 'a string in place of a session hash',
    plant: async (id) => {
      await store.client.set(store.keys.session(id), 'planted');
      return `expires:${id}`;
    },
    recorded: ['created'],
  },
  {
    name: 'a list in place of a shadow key',
    plant: async (id) => {
      await store.client.rpush(store.keys.shadow(id), 'planted');
      return `expires:${id}`;
    },
    recorded: ['created'],
  },
  {
    name: 'a hash in place of an index',
    plant: async (id) => {
      await store.client.del(store.keys.index('principal', 'bad'));
      await store.client.hset(store.keys.index('principal', 'bad'), 'planted', '1');
      return `expires:${id}`;
    },
    // Its session hash is intact, so its end is recorded.
    recorded: ['created', 'expired'],
  },
  {
    name: 'a list in place of a bucket',
    only: 'buckets',
    plant: async (id) => {
      const minute = await bucketOf(id);
      await store.client.del(store.keys.bucket(minute));
      await store.client.rpush(store.keys.bucket(minute), 'planted');
      return `expirations:${minute}`;
    },
    // The session hash names its bucket.
    recorded: ['created', 'expired'],
  },
  {
    name: 'a stray member in a bucket',
    only: 'buckets',
    plant: async (id) => {
      await store.client.sadd(store.keys.bucket(await bucketOf(id)), 'planted');
      return 'planted';
    },
    recorded: ['created', 'expired'],
  },
  {
    name: 'a stray member in the sorted set',
    only: 'sorted-set',
    plant: async () => {
      await store.client.zadd(store.keys.ends, 1, '');
      return 'expires:';
    },
    recorded: ['created', 'expired'],
  },
];

describe.each(STORES)('in the %s', (expirations) => {
  useStore(expirations);

  /** The session stands in exactly one place. */
  async function stands(id: string): Promise<void> {
    const places = [...(await store.buckets(id)), ...((await store.due(id)) === null ? [] : ['the sorted set'])];
    expect(places).toHaveLength(1);
  }

  describe.each(FAULTS.filter(({ only = expirations }) => only === expirations))('$name', ({ plant, recorded }) => {
    it('becomes one dead letter and one log line, while the other sessions are reported', async () => {
      const others = await many(150);
      const bad = await store.create({ a: '1' }, { principal: 'bad', interval: 7200 });
      const neighbours = await Promise.all([1, 2, 3].map(() => store.create({ a: '1' }, { interval: 3600 })));
      for (const id of [bad, ...others, ...neighbours]) await store.runOut(id);
      const letter = await plant(bad);
      const errors = jest.spyOn(Logger.prototype, 'error');

      // Three instances receive the key event, and all three sweep.
      for (let i = 0; i < 3; i++)
        await store.scripts.claimExpired(
          store.keys,
          [`expires:${bad}`].filter((m) => m === letter),
        );
      await Promise.all([1, 2, 3].map(() => sweep(newSweeper())));
      await sweep();

      for (const id of [...others, ...neighbours]) expect(await store.eventTypes(id)).toEqual(['created', 'expired']);
      expect(await store.eventTypes(bad)).toEqual(recorded);
      expect(await store.deadLetters()).toEqual([expect.objectContaining({ member: letter })]);
      expect(errors.mock.calls).toEqual([
        [expect.stringMatching(/^Moved 1 stray keys or members to the dead letters: .*nest:session:events:dead/)],
      ]);
      expect(await store.client.exists(store.keys.bucketList)).toBe(0);
    });
  });

  it('a hash in place of an index does not prevent saves, changes of id or logouts', async () => {
    const id = await store.create({ a: '1' }, { principal: 'bad' });
    const index = store.keys.index('principal', 'bad');
    await store.client.del(index);
    await store.client.hset(index, 'planted', '1');
    const newId = store.id();
    expect(await store.save(id, { attributes: [['a', '2']] })).toEqual({ outcome: 'saved' });
    expect(await store.save(id, { newId })).toEqual({ outcome: 'saved' });
    expect(await store.scripts.touch(newId)).toEqual({ outcome: 'touched' });
    expect(await sweep()).toMatchObject({ alive: 1, corrupt: 0 });
    await stands(newId);
    expect(await store.scripts.delete(newId)).toEqual({ outcome: 'deleted' });
    expect(await store.client.hgetall(index)).toEqual({ planted: '1' });
  });

  it('each session is reported, whatever its fields contain', async () => {
    const text = fc.oneof(
      fc.json(),
      fc.string({ unit: 'binary' }),
      fc.json().map((json) => JSON.stringify(json)),
      // Almost valid values.
      fc.array(fc.array(fc.oneof(fc.string(), fc.integer(), fc.constant(null)))).map((v) => JSON.stringify(v)),
    );
    const values = fc.sample(
      fc.record({ index: text, bucket: text, maxInactiveInterval: text, absoluteExpiry: text }),
      {
        numRuns: 300,
        seed: 20_261_120,
      },
    );
    const ids = await many(values.length);
    await Promise.all(ids.map((id, i) => store.client.hset(store.keys.session(id), values[i]!)));
    const [alive, over] = [ids.slice(0, 100), ids.slice(100)];
    for (const id of over) await store.runOut(id);
    expect(await sweep()).toMatchObject({ claimed: over.length, alive: alive.length, corrupt: 0 });
    for (const id of alive) await stands(id);
  });
});

describe('a stray key in place of a bucket', () => {
  useStore('buckets');

  it('a renewed session whose bucket was replaced moves to another bucket', async () => {
    const [touched, saved, rotated] = (await many(3)) as [string, string, string];
    const minute = await bucketOf(touched);
    await store.client.del(store.keys.bucket(minute));
    await store.client.rpush(store.keys.bucket(minute), 'planted');
    const newId = store.id();
    expect(await store.scripts.touch(touched)).toEqual({ outcome: 'touched' });
    expect(await store.save(saved, { attributes: [['a', '2']] })).toEqual({ outcome: 'saved' });
    expect(await store.save(rotated, { newId })).toEqual({ outcome: 'saved' });
    expect(await sweep()).toMatchObject({ alive: 3, corrupt: 1 });
    for (const id of [touched, saved, newId]) {
      const buckets = await store.buckets(id);
      expect(buckets).toHaveLength(1);
      // Never later than the bucket of its end.
      expect(Number(buckets[0])).toBeLessThanOrEqual((await store.client.pexpiretime(store.keys.shadow(id))) + MINUTE);
      await store.runOut(id);
    }
    await sweep();
    for (const id of [touched, saved, newId]) expect(await store.eventTypes(id)).toContain('expired');
  });

  it('a session is created, kept and reported although every bucket near its minute is a stray key', async () => {
    const [probe] = await many(1);
    const minute = Number(await bucketOf(probe!));
    await store.client.flushall();
    for (let i = -2; i <= 2; i++) await store.client.rpush(store.keys.bucket(String(minute + i * MINUTE)), 'planted');
    const [id] = (await many(1)) as [string];
    const early = await bucketOf(id);
    expect(Number(early)).toBeLessThan(minute - 2 * MINUTE);
    expect(await sweep()).toMatchObject({ alive: 1, claimed: 0 });
    expect(await store.buckets(id)).toHaveLength(1);
    await store.runOut(id);
    expect(await sweep()).toMatchObject({ claimed: 1 });
  });

  it('live sessions move to another bucket when theirs was replaced, and ended ones are reported', async () => {
    const alive = await many(250);
    const [over, lost] = (await many(2)) as [string, string];
    const minute = await bucketOf(over);
    await store.client.del(store.keys.bucket(minute));
    await store.client.rpush(store.keys.bucket(minute), 'planted');
    await store.runOut(over);
    // No key is left to show that this session existed.
    await store.client.del(store.keys.session(lost), store.keys.shadow(lost));
    expect(await sweep()).toMatchObject({ alive: 250, claimed: 1, corrupt: 1 });
    expect(await store.eventTypes(over)).toEqual(['created', 'expired']);
    for (const id of alive) expect(await store.buckets(id)).toHaveLength(1);
    for (const id of alive) await store.runOut(id);
    expect(await sweep()).toMatchObject({ claimed: 250, corrupt: 0 });
  });

  it('a session whose key event arrives is reported although its bucket was replaced', async () => {
    const [id] = (await many(1)) as [string];
    const minute = await bucketOf(id);
    await store.client.del(store.keys.bucket(minute));
    await store.client.rpush(store.keys.bucket(minute), 'planted');
    await store.runOut(id);
    expect(await store.scripts.claimExpired(store.keys, [`expires:${id}`])).toMatchObject([{ outcome: 'claimed' }]);
    expect(await store.eventTypes(id)).toEqual(['created', 'expired']);
  });
});

describe('a stray key in place of the sorted set', () => {
  useStore('sorted-set');

  const replace = async () => {
    await store.client.del(store.keys.ends);
    await store.client.rpush(store.keys.ends, 'planted');
  };

  it('the sessions that it had go to buckets, and ended ones are reported, by all instances once each', async () => {
    const alive = await many(250);
    const [over, reported, lost] = (await many(3)) as [string, string, string];
    const endless = await store.create({ a: '1' }, { interval: -1 });
    await store.runOut(reported);
    expect(await sweep()).toMatchObject({ claimed: 1 });
    await replace();
    await store.runOut(over);
    // No key is left to show that this session existed.
    await store.client.del(store.keys.session(lost), store.keys.shadow(lost));
    const errors = jest.spyOn(Logger.prototype, 'error');
    const passes = await Promise.all([sweep(), sweep(newSweeper()), sweep(newSweeper())]);
    expect(passes.reduce((sum, { claimed }) => sum + claimed, 0)).toBe(1);
    expect(errors).toHaveBeenCalledTimes(3);
    expect(errors).toHaveBeenCalledWith(expect.stringContaining('WRONGTYPE nest:session:ends is a list, not a zset'));
    for (const id of [over, reported]) expect(await store.eventTypes(id)).toEqual(['created', 'expired']);
    for (const id of alive) expect(await store.buckets(id)).toHaveLength(1);
    expect(await store.buckets(endless)).toEqual([]);
    for (const id of alive) await store.runOut(id);
    expect(await sweep()).toMatchObject({ claimed: 250 });
    expect(await store.eventTypes(endless)).toEqual(['created']);
    expect(await store.client.lrange(store.keys.ends, 0, -1)).toEqual(['planted']);
  });

  it('an instance looks for its sessions once, and again when another one takes its place', async () => {
    await replace();
    const scans = jest.spyOn(store.client, 'scan');
    for (let i = 0; i < 3; i++) await sweep();
    expect(scans).toHaveBeenCalledTimes(1);
    await store.client.del(store.keys.ends);
    const [id] = (await many(1)) as [string];
    await sweep();
    await replace();
    await store.runOut(id);
    expect(await sweep()).toMatchObject({ claimed: 1 });
  });

  it('a renewed session goes to a bucket, and comes back when the sorted set is there again', async () => {
    const [touched, saved, rotated] = (await many(3)) as [string, string, string];
    await replace();
    const newId = store.id();
    expect(await store.scripts.touch(touched)).toEqual({ outcome: 'touched' });
    expect(await store.save(saved, { attributes: [['a', '2']] })).toEqual({ outcome: 'saved' });
    expect(await store.save(rotated, { newId })).toEqual({ outcome: 'saved' });
    for (const id of [touched, saved, newId]) expect(await store.buckets(id)).toHaveLength(1);
    await store.client.del(store.keys.ends);
    expect(await sweep()).toMatchObject({ alive: 3 });
    for (const id of [touched, saved, newId]) {
      expect(await store.buckets(id)).toEqual([]);
      expect(await store.due(id)).not.toBeNull();
      await store.runOut(id);
    }
    expect(await sweep()).toMatchObject({ claimed: 3 });
  });

  it('a scan that breaks off begins again at the next sweep', async () => {
    const ids = await many(250);
    await replace();
    for (const id of ids) await store.runOut(id);
    const claim = store.scripts.claimExpired.bind(store.scripts);
    jest
      .spyOn(store.scripts, 'claimExpired')
      .mockImplementationOnce(claim)
      .mockRejectedValueOnce(new Error('broken off'));
    expect(await sweep()).toMatchObject({ claimed: 100 });
    expect(await sweep()).toMatchObject({ claimed: 150 });
  });
});
