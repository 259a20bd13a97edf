import { Redis } from 'ioredis';
import { SessionScripts } from '../../src/scripts/session/session.scripts.js';
import { KEEPING_RULES, MINUTE, Store, updateOf } from '../support/store.fixture.js';
import { takeCleanupTurn } from '../support/event-scripts.js';

const HOUR = 60 * MINUTE;
const ALL = 1000;

describe.each([1, 4])('the sorted set of ends, with %d partitions,', (partitions) => {
  let store: Store;
  let client: Redis;
  /** Of an instance that notes ends in buckets. */
  let bucketScripts: SessionScripts;
  beforeAll(async () => {
    store = await Store.open({ partitions, expirations: 'sorted-set' });
    client = new Redis(store.server.url);
    bucketScripts = new SessionScripts(client, store.partitions, KEEPING_RULES);
  });
  afterAll(async () => {
    client.disconnect();
    await store.close();
  });

  const endOf = async (id: string) => String(await store.client.pexpiretime(store.keysOf(id).shadow(id)));
  /** One session in a bucket, and where it stands. */
  const inBucket = async (interval = 1800) => {
    const id = store.id();
    const times = { presentedIds: [], maxInactiveInterval: interval, absoluteTimeout: -1 };
    await bucketScripts.create({ kind: 'create', id, ...times, attributes: new Map(), indexes: new Map() });
    return id;
  };
  const places = async (id: string) => ({ buckets: await store.buckets(id), due: await store.due(id) });
  const claimDue = (id: string, ahead = 0, scripts = store.scripts) => scripts.claimDue(store.keysOf(id), ALL, ahead);
  const wordOf = async (id: string, ahead = 0, scripts = store.scripts) =>
    (await claimDue(id, ahead, scripts)).entries.find((each) => each.id === id)?.outcome;
  const sweepBucket = async (id: string, scripts = store.scripts) =>
    scripts.claimExpired(store.keysOf(id), [`expires:${id}`], (await store.buckets(id))[0]);

  it('has each new session by the millisecond of its end, and no field and no bucket tells of it', async () => {
    const id = await store.create({ a: '1' });
    expect(await places(id)).toEqual({ buckets: [], due: await endOf(id) });
    expect(await store.session(id)).not.toHaveProperty('bucket');
    expect(await store.client.exists(store.keysOf(id).bucketList)).toBe(0);
    expect(await store.client.pttl(store.keysOf(id).ends)).toBe(-1);
    const endless = await store.create({ a: '1' }, { interval: -1 });
    expect(await store.due(endless)).toBeNull();
  });

  it('is written by a save or a touch only for an earlier end, or when it has lost the session', async () => {
    const id = await store.create({ a: '1' }, { interval: 600 });
    const first = await store.due(id);
    await store.save(id, { maxInactiveInterval: 1800 });
    await store.scripts.touch(id);
    expect(await store.due(id)).toBe(first);
    await store.save(id, { maxInactiveInterval: 60 });
    expect(await store.due(id)).toBe(await endOf(id));
    await store.client.zrem(store.keysOf(id).ends, id);
    await store.scripts.touch(id);
    expect(await store.due(id)).toBe(await endOf(id));
  });

  it('no longer has a session that never ends, or has ended', async () => {
    const [id, deleted] = [await store.create({ a: '1' }), await store.create({ a: '1' })];
    await store.save(id, { maxInactiveInterval: -1 });
    await store.scripts.delete(deleted);
    expect([await store.due(id), await store.due(deleted)]).toEqual([null, null]);
    await store.save(id, { maxInactiveInterval: 1800 });
    expect(await store.due(id)).toBe(await endOf(id));
    await store.save(id, { maxInactiveInterval: 0 });
    expect(await store.due(id)).toBeNull();
  });

  it.each([false, true])(
    'has a rotated session under its new id, with the time that it had (idle: %s)',
    async (keepsIdle) => {
      const id = await store.create({ a: '1' }, { interval: 600 });
      const due = await store.due(id);
      await store.save(id, { maxInactiveInterval: 1800 });
      const newId = store.id(id);
      await store.save(id, { newId, keepsIdle });
      expect([await store.due(id), await store.due(newId)]).toEqual([null, due]);
      expect(await store.buckets(newId)).toEqual([]);
    },
  );

  it('gives out what has ended, the earliest first, as many as asked for, and says when the next one is due', async () => {
    await store.client.flushall();
    const first = await store.create({ a: '1' });
    const beside = async () => store.create({ a: '1' }, { id: store.id(first) });
    const [second, third, alive] = [await beside(), await beside(), await beside()];
    const { ends } = store.keysOf(first);
    for (const [i, id] of [first, second, third].entries()) {
      await store.runOut(id);
      await store.client.zadd(ends, `${i + 1}`, id);
    }
    const reply = await store.scripts.claimDue(store.keysOf(first), 2);
    expect(reply.entries).toEqual([
      { id: first, time: '1', outcome: 'claimed', delay: 0 },
      { id: second, time: '2', outcome: 'claimed', delay: 0 },
    ]);
    expect(reply.next).toBe(0);
    const rest = await store.scripts.claimDue(store.keysOf(first), 2);
    expect(rest.entries).toEqual([{ id: third, time: '3', outcome: 'claimed', delay: 0 }]);
    expect(rest.next).toBe(Number(await endOf(alive)) + 1 - rest.now);
    expect(await store.eventTypesOf([first, second, third])).toEqual(Array(3).fill(['created', 'expired']));
    expect(await store.client.zrange(ends, '0', '-1')).toEqual([alive]);
    await store.client.del(ends);
    expect(await store.scripts.claimDue(store.keysOf(first), 2)).toMatchObject({ entries: [], next: undefined });
  });

  it('looks no further ahead than it is told to, and then at each session once, also of the same millisecond', async () => {
    await store.client.flushall();
    const first = await store.create({ a: '1' });
    const keys = store.keysOf(first);
    const ids = [first];
    while (ids.length < 25) ids.push(await store.create({ a: '1' }, { id: store.id(first) }));
    const end = (await store.now()) + HOUR;
    for (const id of ids) {
      await store.client.pexpireat(keys.shadow(id), end);
      await store.client.zadd(keys.ends, end, id);
    }
    expect((await store.scripts.claimDue(keys, ALL, HOUR / 2)).entries).toEqual([]);
    const seen: string[] = [];
    for (let after; ;) {
      const { entries: sessions } = await store.scripts.claimDue(keys, 4, 2 * HOUR, after);
      seen.push(...sessions.map(({ id }) => id));
      after = sessions.at(-1);
      if (sessions.length < 4) break;
    }
    expect(seen.toSorted()).toEqual(ids.toSorted());
  });

  it('gives a session back that was renewed, by the millisecond of its end', async () => {
    const id = await store.create({ a: '1' }, { interval: 600 });
    await store.client.zadd(store.keysOf(id).ends, 1, id);
    expect(await wordOf(id)).toBe('alive');
    expect(await places(id)).toEqual({ buckets: [], due: await endOf(id) });
    await store.client.persist(store.keysOf(id).shadow(id));
    expect(await wordOf(id, HOUR)).toBe('alive');
    expect(await store.due(id)).toBeNull();
  });

  it('reports a session without data once; a key event leaves it to that', async () => {
    const id = await store.create({ a: '1' });
    await store.client.del(store.keysOf(id).session(id), store.keysOf(id).shadow(id));
    expect(await store.scripts.claimExpired(store.keysOf(id), [`expires:${id}`])).toMatchObject([
      { outcome: 'already' },
    ]);
    expect(await wordOf(id, HOUR)).toBe('claimed');
    expect(await wordOf(id, HOUR)).toBeUndefined();
    expect(await store.events(id)).toContainEqual(expect.objectContaining({ type: 'expired', dataLost: '1' }));
    expect(await store.eventTypes(id)).toEqual(['created', 'expired']);
  });

  it('loses the session that a key event has claimed, which is recorded once', async () => {
    const id = await store.create({ a: '1' });
    await store.runOut(id);
    expect(await store.scripts.claimExpired(store.keysOf(id), [`expires:${id}`])).toMatchObject([
      { outcome: 'claimed' },
    ]);
    expect(await store.due(id)).toBeNull();
    await store.client.zadd(store.keysOf(id).ends, 1, id);
    expect(await wordOf(id)).toBe('already');
    expect(await store.due(id)).toBeNull();
    expect(await store.eventTypes(id)).toEqual(['created', 'expired']);
  });

  it('puts what it cannot claim among the dead letters, and goes on with the others', async () => {
    const good = await store.create({ a: '1' });
    const bad = await store.create({ a: '1' }, { id: store.id(good) });
    const keys = store.keysOf(good);
    await store.runOut(good);
    await store.runOut(bad);
    await store.client.set(keys.session(bad), 'planted');
    for (const id of [bad, good]) await store.client.zadd(keys.ends, 1, id);
    const { entries: sessions } = await claimDue(good);
    const words = Object.fromEntries(sessions.map(({ id, outcome }) => [id, outcome]));
    expect([words[good], words[bad]]).toEqual(['claimed', 'corrupt']);
    expect(await store.client.xrange(keys.deadLetters, '-', '+')).toEqual([
      [expect.any(String), expect.arrayContaining([`expires:${bad}`])],
    ]);
    await store.client.del(keys.session(bad), keys.deadLetters);
    expect(await store.due(bad)).toBeNull();
  });

  it('takes a session over from its bucket when that is swept, and gives it back when others sweep the set', async () => {
    const id = await inBucket();
    await store.scripts.touch(id);
    await store.save(id, { attributes: [['a', '2']] });
    expect(await store.due(id)).toBeNull();
    expect(await sweepBucket(id)).toMatchObject([{ outcome: 'alive' }]);
    expect(await places(id)).toEqual({ buckets: [], due: await endOf(id) });
    expect(await store.session(id)).not.toHaveProperty('bucket');
    expect(await store.client.exists(store.keysOf(id).bucketList)).toBe(0);
    expect(await wordOf(id, HOUR, bucketScripts)).toBe('alive');
    expect(await store.due(id)).toBeNull();
    expect(await store.buckets(id)).toEqual([(await store.session(id))['bucket']]);
    await store.runOut(id);
    expect(await sweepBucket(id)).toMatchObject([{ outcome: 'claimed' }]);
    expect(await store.eventTypes(id)).toEqual(['created', 'expired']);
  });

  it('takes a session over whose end a save brings forward, as a bucket does, and the old place is left', async () => {
    const [id, other] = [await inBucket(), await store.create({ a: '1' })];
    await store.save(id, { maxInactiveInterval: 60 });
    expect(await places(id)).toEqual({ buckets: [], due: await endOf(id) });
    expect(await store.session(id)).not.toHaveProperty('bucket');
    await bucketScripts.save(updateOf(other, { maxInactiveInterval: 60 }));
    expect(await store.due(other)).toBeNull();
    expect(await store.buckets(other)).toEqual([(await store.session(other))['bucket']]);
  });

  it('and a bucket are both left by ends of instances that write to the other one', async () => {
    const [id, other] = [await inBucket(), await store.create({ a: '1' })];
    await store.scripts.delete(id);
    await bucketScripts.delete(other);
    expect([await places(id), await places(other)]).toEqual([
      { buckets: [], due: null },
      { buckets: [], due: null },
    ]);
  });

  it.each(['bucket', 'set'])(
    'leaves a session where it is recorded when it stands in both: found in its %s',
    async (found) => {
      const [id, other] = [await inBucket(), await store.create({ a: '1' })];
      await store.client.zadd(store.keysOf(id).ends, await endOf(id), id);
      const keys = store.keysOf(other);
      await store.client.sadd(keys.bucket('60000'), `expires:${other}`);
      await store.client.zadd(keys.bucketList, '60000', '60000');
      if (found === 'set') {
        expect(await wordOf(id, HOUR)).toBe('alive');
        expect(await places(id)).toEqual({ buckets: [(await store.session(id))['bucket']], due: null });
      } else {
        expect(await sweepBucket(other)).toMatchObject([{ outcome: 'alive' }]);
        expect(await places(other)).toEqual({ buckets: [], due: await endOf(other) });
      }
      await store.client.flushall();
    },
  );

  it('is replaced by buckets while a stray key stands in its place, and holds up nobody', async () => {
    const before = await store.create({ a: '1' });
    const { ends } = store.keysOf(before);
    await store.client.set(ends, 'planted');
    const id = await store.create({ a: '1' }, { id: store.id(before) });
    expect(await store.buckets(id)).toHaveLength(1);
    await store.scripts.touch(before);
    expect(await store.buckets(before)).toHaveLength(1);
    const newId = store.id(before);
    await store.save(before, { newId, attributes: [['a', '2']] });
    expect(await store.scripts.delete(newId)).toEqual({ outcome: 'deleted' });
    await expect(store.scripts.claimDue(store.keysOf(id), 10)).rejects.toThrow(
      `WRONGTYPE ${ends} is a string, not a zset`,
    );
    await store.runOut(id);
    expect(await sweepBucket(id)).toMatchObject([{ outcome: 'claimed' }]);
    expect(await store.client.get(ends)).toBe('planted');
    await store.client.del(ends);
  });

  it('is a reason to clean up when it has something that is due', async () => {
    await store.client.flushall();
    const id = await store.create({ a: '1' });
    await store.client.del(store.keysOf(id).events);
    expect(await takeCleanupTurn(store, store.keysOf(id))).toBe('clean');
    await store.client.zadd(store.keysOf(id).ends, 1, id);
    expect(await takeCleanupTurn(store, store.keysOf(id))).toBe('due');
  });
});
