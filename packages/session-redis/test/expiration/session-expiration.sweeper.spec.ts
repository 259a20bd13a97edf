import { Logger } from '@nestjs/common';
import { jest } from '@jest/globals';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { SessionExpirationSweeper } from '../../src/expiration/session-expiration.sweeper.js';
import { BackgroundLimiter } from '../../../redis-events/src/timing/background.limiter.js';
import type { SessionKeys } from '../../src/keys/session-keys.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { SessionScripts } from '../../src/scripts/session/session.scripts.js';
import { KEEPING_RULES, MINUTE, Store } from '../support/store.fixture.js';

LeakGuard.install();
Logger.overrideLogger(false);

const HOUR = 60 * MINUTE;

describe.each([1, 4])('the sweeper with %d partitions', (partitions) => {
  let store: Store;
  beforeAll(async () => {
    store = await Store.open({ partitions });
  });
  afterAll(() => store.close());
  beforeEach(() => store.client.flushall());
  afterEach(() => {
    jest.restoreAllMocks();
  });

  const sweeper = (batchSize = 100) =>
    new SessionExpirationSweeper(store.client, store.scripts, store.partitions, { batchSize }, new BackgroundLimiter());
  const many = (count: number) => Promise.all(Array.from({ length: count }, () => store.create({ a: '1' })));

  it('claims every session that has ended, batch by batch, and no other', async () => {
    const over = await many(150);
    const alive = await many(30);
    await Promise.all(over.map((id) => store.runOut(id)));
    const claims = jest.spyOn(store.scripts, 'claimExpired');
    expect(await sweeper(10).runOnce({ ahead: HOUR })).toMatchObject({
      claimed: 150,
      alive: 30,
      already: 0,
      corrupt: 0,
    });
    expect(Math.max(...claims.mock.calls.map(([, members]) => members.length))).toBe(10);
    expect(await store.eventTypesOf(over)).toEqual(over.map(() => ['created', 'expired']));
    for (const id of alive) expect(await store.isAlive(id)).toBe(true);
    expect(await sweeper(10).runOnce({ ahead: HOUR })).toMatchObject({ claimed: 0, alive: 30, already: 0 });
  });

  it('counts each live session once, although Redis returns it again while its set shrinks', async () => {
    // So many that a scan takes several steps, and that about half of them shrink the set below its next size.
    for (let round = 0; round < 3; round++) {
      await store.client.flushall();
      const [over, alive] = [await many(90 * partitions), await many(60 * partitions)];
      await Promise.all(over.map((id) => store.runOut(id)));
      const found = await sweeper(10).runOnce({ ahead: HOUR });
      expect(found).toMatchObject({ claimed: over.length, alive: alive.length, already: 0 });
    }
  });

  it('counts a session once that it moves to a later minute of the same pass', async () => {
    const id = await store.create({ a: '1' }, { interval: 60 });
    await store.save(id, { maxInactiveInterval: 1800 });
    const [early] = await store.buckets(id);
    for (const interval of [1740, 1800, 1860]) await store.create({}, { id: store.id(id), interval });
    expect(await sweeper().runOnce({ ahead: HOUR })).toMatchObject({ alive: 4, claimed: 0 });
    expect(await store.buckets(id)).not.toEqual([early]);
  });

  it('reads minutes up to the clock of Redis, and later ones only on request', async () => {
    const [id] = await many(1);
    await store.runOut(id!);
    expect(await sweeper().runOnce()).toMatchObject({ buckets: 0, claimed: 0 });
    expect(await sweeper().runOnce({ ahead: HOUR })).toMatchObject({ buckets: 1, claimed: 1 });
    expect(await store.client.exists(store.keys.bucketList)).toBe(0);
  });

  it('continues past a stray key in place of a bucket and a stray member', async () => {
    const { client, keys } = store;
    await client.zadd(keys.bucketList, MINUTE, String(MINUTE), 2 * MINUTE, String(2 * MINUTE));
    await client.rpush(keys.bucket(String(MINUTE)), 'a list');
    // The second one is as Java serializes a text, and no text in UTF-8.
    const bytes = Buffer.from('\xac\xed\0\x05t\0\x0fexpires:foreign', 'latin1');
    await client.sadd(keys.bucket(String(2 * MINUTE)), 'foreign', bytes);
    const [id] = await many(1);
    await store.runOut(id!);
    expect(await sweeper().runOnce({ ahead: HOUR })).toMatchObject({ claimed: 1, corrupt: 3 });
    expect(await store.eventTypes(id!)).toEqual(['created', 'expired']);
    expect(await client.exists(keys.bucketList)).toBe(0);
    expect(await sweeper().runOnce({ ahead: HOUR })).toMatchObject({ claimed: 0, corrupt: 0 });
  });

  it('records each end once when several instances sweep at the same time', async () => {
    const over = await many(300);
    await Promise.all(over.map((id) => store.runOut(id)));
    const results = await Promise.all([1, 2, 3].map(() => sweeper(20).runOnce({ ahead: HOUR })));
    expect(results.reduce((sum, { claimed }) => sum + claimed, 0)).toBe(300);
    expect(await store.eventTypesOf(over)).toEqual(over.map(() => ['created', 'expired']));
  });

  it('reads the oldest minutes of all partitions first', async () => {
    const intervals = [3600, 60, 1800];
    await Promise.all(Array.from({ length: 90 }, (_, i) => store.create({}, { interval: intervals[i % 3]! })));
    const claims = jest.spyOn(store.scripts, 'claimExpired');
    await sweeper().runOnce({ ahead: 2 * HOUR });
    const minutes = claims.mock.calls.map(([, , minute]) => Number(minute));
    expect(minutes).toEqual(minutes.toSorted((a, b) => a - b));
    expect(new Set(minutes).size).toBeGreaterThanOrEqual(3);
    expect(new Set(claims.mock.calls.map(([keys]) => keys))).toEqual(new Set(store.partitions.all));
  });

  it('logs a partition that it cannot read and sweeps the others', async () => {
    const over = await many(40);
    await Promise.all(over.map((id) => store.runOut(id)));
    const [foreign] = store.partitions.all;
    const here = over.filter((id) => store.keysOf(id) === foreign);
    await store.client.rename(foreign!.bucketList, 'aside');
    await store.client.set(foreign!.bucketList, 'planted');
    const errors = jest.spyOn(Logger.prototype, 'error');
    expect(await sweeper().runOnce({ ahead: HOUR })).toMatchObject({ claimed: 40 - here.length });
    expect(errors.mock.calls).toEqual([[expect.stringContaining('WRONGTYPE')]]);
    await store.client.rename('aside', foreign!.bucketList);
    expect(await sweeper().runOnce({ ahead: HOUR })).toMatchObject({ claimed: here.length });
  });

  it('finds the sessions of each sorted set once, each time that a stray key has taken its place', async () => {
    const client = store.client.duplicate();
    const scripts = new SessionScripts(client, store.partitions, { ...KEEPING_RULES, store: 'sorted-set' });
    const limiter = new BackgroundLimiter();
    const own = new SessionExpirationSweeper(client, scripts, store.partitions, { batchSize: 10 }, limiter);
    const scans = jest.spyOn(client, 'scan');
    const create = async (id: string) => {
      const [change, times] = [{ kind: 'create', presentedIds: [] } as const, { absoluteTimeout: -1 }];
      const content = { maxInactiveInterval: 1800, attributes: new Map(), indexes: new Map() };
      await scripts.create({ ...change, id, ...times, ...content });
      await store.runOut(id);
    };
    try {
      for (let round = 1; round <= 2; round++) {
        const ids = store.partitions.all.map((keys) => idIn(keys));
        for (const id of ids) await create(id);
        for (const id of ids) await store.client.set(store.keysOf(id).ends, 'foreign');
        await own.runOnce();
        expect(await store.eventTypesOf(ids)).toEqual(ids.map(() => ['created', 'expired']));
        // The last partition works again: the scan of all keys is not repeated in the others.
        await store.client.del(store.partitions.all.at(-1)!.ends);
        scans.mockClear();
        for (let pass = 1; pass <= 2; pass++) await own.runOnce();
        expect(scans).not.toHaveBeenCalled();
        for (const { ends } of store.partitions.all) await store.client.del(ends);
        await own.runOnce();
      }
    } finally {
      client.disconnect();
    }
  });

  it('leaves a namespace alone whose keys look like sessions when it scans for those of a stray key', async () => {
    const other = new SessionPartitions('nest:session:sessions');
    const scripts = new SessionScripts(store.client, other, { ...KEEPING_RULES, store: 'sorted-set' });
    const [id, content] = [store.id(), { maxInactiveInterval: 1800, absoluteTimeout: -1, attributes: new Map() }];
    await scripts.create({ kind: 'create', id, presentedIds: [], ...content, indexes: new Map() });
    await store.client.hset(other.meta, 'version', 3);
    for (const { ends } of store.partitions.all) await store.client.set(ends, 'foreign');
    expect(await sweeper().runOnce()).toMatchObject({ claimed: 0 });
    expect(await store.client.hget(other.all[0]!.session(id), 'ended')).toBeNull();
    expect(await store.client.hgetall(other.meta)).toEqual({ version: '3' });
  });

  /** An unused id of a partition. */
  function idIn(keys: SessionKeys): string {
    const id = store.id();
    return store.keysOf(id) === keys ? id : idIn(keys);
  }

  it('moves a session that was renewed while no sweeper ran to its right minute', async () => {
    const id = await store.create({ a: '1' }, { interval: 60 });
    const [early] = await store.buckets(id);
    await store.save(id, { maxInactiveInterval: 7200 });
    expect(await store.buckets(id)).toEqual([early]);
    expect(await sweeper().runOnce({ ahead: 3 * MINUTE })).toMatchObject({ alive: 1, claimed: 0 });
    const [right] = await store.buckets(id);
    expect(Number(right)).toBeGreaterThan(Number(early) + HOUR);
    await store.runOut(id);
    expect(await sweeper().runOnce({ ahead: 3 * HOUR })).toMatchObject({ claimed: 1 });
  });

  it('claims a large bucket in full batches', async () => {
    const over = await many(300 * partitions);
    await Promise.all(over.map((id) => store.runOut(id)));
    const claims = jest.spyOn(store.scripts, 'claimExpired');
    await sweeper(50).runOnce({ ahead: HOUR });
    const sizes = claims.mock.calls.map(([, members]) => members.length);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(over.length);
    // In each partition the last one, and the empty one that cleans up.
    expect(sizes.filter((size) => size < 50).length).toBeLessThanOrEqual(2 * partitions);
  });

  it('begins each scan of a large bucket at another place, and still claims every session', async () => {
    const over = await many(300 * partitions);
    await Promise.all(over.map((id) => store.runOut(id)));
    const scans = jest.spyOn(store.client, 'sscan');
    const unclaimed = jest.spyOn(store.scripts, 'claimExpired').mockResolvedValue([]);
    const secondCursors: unknown[] = [];
    for (let pass = 0; pass < 3; pass++) {
      scans.mockClear();
      await sweeper().runOnce({ ahead: HOUR });
      secondCursors.push(scans.mock.calls[1]![1]);
    }
    expect(new Set(secondCursors).size).toBe(3);
    unclaimed.mockRestore();
    expect(await sweeper().runOnce({ ahead: HOUR })).toMatchObject({ claimed: over.length });
  });

  it('continues the scan of a large bucket at another place where others have claimed a batch, and leaves no page out', async () => {
    const over = await many(300 * partitions);
    await Promise.all(over.map((id) => store.runOut(id)));
    const cursors: { readonly asked: unknown; readonly next: unknown }[] = [];
    const scan = store.client.sscan.bind(store.client);
    jest.spyOn(store.client, 'sscan').mockImplementation(async (...args: Parameters<typeof scan>) => {
      const page = await scan(...args);
      cursors.push({ asked: args[1], next: page[0] });
      return page;
    });
    const claims = jest.spyOn(store.scripts, 'claimExpired');
    claims.mockImplementation(async (_, members) => members.map(() => ({ outcome: 'already' })));
    await sweeper(10).runOnce({ ahead: HOUR });
    const jumps = cursors.slice(1).filter(({ asked }, n) => asked !== '0' && asked !== cursors[n]!.next);
    // Each bucket has one random beginning, after which the scan goes on where it was.
    expect(jumps.length).toBeGreaterThan(2 * partitions);
    const members = new Set(claims.mock.calls.flatMap(([, batch]) => batch));
    expect(members).toEqual(new Set(over.map((id) => `expires:${id}`)));
  });

  it('continues with the other batches when one fails, and claims the rest in the next pass', async () => {
    // A larger bucket may be tried again in the same pass.
    const over = await many(90);
    await Promise.all(over.map((id) => store.runOut(id)));
    const errors = jest.spyOn(Logger.prototype, 'error');
    const claims = jest.spyOn(store.scripts, 'claimExpired').mockRejectedValueOnce(new Error('the first batch'));
    const { claimed } = await sweeper(20).runOnce({ ahead: HOUR });
    const failed = claims.mock.calls[0]![1].length;
    expect(failed).toBeGreaterThan(0);
    expect(claimed).toBe(90 - failed);
    expect(errors.mock.calls).toEqual([
      [expect.stringMatching(/^1 batch of the sweep failed, for the next one to repeat: .*the first batch/)],
    ]);
    expect(await sweeper(20).runOnce({ ahead: HOUR })).toMatchObject({ claimed: failed });
  });

  it('counts the sessions that an earlier pass should have claimed', async () => {
    const { client, keys } = store;
    const [late, justNow, due] = await many(3);
    const minute = `${Math.floor((await store.now()) / 60_000) * 60_000}`;
    const ofDue = store.keysOf(due!);
    await client.srem(ofDue.bucket((await store.buckets(due!))[0]!), `expires:${due}`);
    await client.sadd(ofDue.bucket(minute), `expires:${due}`);
    await client.zadd(ofDue.bucketList, minute, minute);
    await client.hset(ofDue.session(due!), 'bucket', minute);
    await store.runOut(due!);
    await client.del(keys.session(late!), keys.shadow(late!));
    await client.srem(keys.bucket((await store.buckets(late!))[0]!), `expires:${late}`);
    await client.sadd(keys.bucket('60000'), `expires:${late}`);
    await client.zadd(keys.bucketList, 60000, '60000');
    await store.runOut(justNow!);
    expect(await sweeper().runOnce({ ahead: HOUR })).toMatchObject({ claimed: 3, late: 1 });
  });

  it('does not claim again a session that another instance has just claimed', async () => {
    const over = await many(20);
    await Promise.all(over.map((id) => store.runOut(id)));
    const claim = store.scripts.claimExpired.bind(store.scripts);
    jest.spyOn(store.scripts, 'claimExpired').mockImplementation(async (...call) => {
      await claim(...call);
      return claim(...call);
    });
    expect(await sweeper().runOnce({ ahead: HOUR })).toMatchObject({ claimed: 0, already: 20 });
    expect(await store.eventTypesOf(over)).toEqual(over.map(() => ['created', 'expired']));
  });

  it('stops before its next batch and its next bucket when it is aborted', async () => {
    const intervals = [60, 1800, 3600];
    await Promise.all(Array.from({ length: 90 }, (_, i) => store.create({}, { interval: intervals[i % 3]! })));
    const stop = new AbortController();
    const claim = store.scripts.claimExpired.bind(store.scripts);
    const claims = jest.spyOn(store.scripts, 'claimExpired').mockImplementationOnce((...call) => {
      stop.abort();
      return claim(...call);
    });
    expect(await sweeper(1).runOnce({ ahead: 2 * HOUR, signal: stop.signal })).toMatchObject({ buckets: 1 });
    expect(claims).toHaveBeenCalledTimes(1);
  });
});
