import { ageOf, SessionScripts } from '../../src/scripts/session/session.scripts.js';
import { GRACE, KEEPING_RULES, MINUTE, RETENTION, Store } from '../support/store.fixture.js';
import { takeCleanupTurn } from '../support/event-scripts.js';

describe.each([1, 4])('with %d partitions', (partitions) => {
  let store: Store;
  beforeAll(async () => {
    store = await Store.open({ partitions });
  });
  afterAll(() => store.close());

  describe('create-session', () => {
    it('leaves exactly the documented keys, types, fields and times to live', async () => {
      const { client } = store;
      await client.flushall();
      const id = await store.create({ cart: '["apple"]' }, { principal: 'ann' });
      const keys = store.keysOf(id);

      const end = await client.pexpiretime(keys.shadow(id));
      const types = await Promise.all((await client.keys('*')).map(async (key) => [key, await client.type(key)]));
      const found = Object.fromEntries(types);
      const { creationTime, bucket: recorded = '' } = await store.session(id);
      expect(found).toEqual({
        [keys.session(id)]: 'hash',
        [keys.shadow(id)]: 'string',
        [keys.bucketList]: 'zset',
        [keys.bucket(recorded)]: 'set',
        [keys.index('principal', 'ann')]: 'zset',
        [keys.events]: 'stream',
      });
      expect(end).toBe(Number(creationTime) + 30 * MINUTE);
      expect(recorded).toBe(String(Math.floor((end + MINUTE) / MINUTE) * MINUTE));
      expect(await store.session(id)).toEqual({
        creationTime: expect.stringMatching(/^\d{13}$/),
        lastAccessedTime: expect.stringMatching(/^\d{13}$/),
        maxInactiveInterval: '1800',
        'sessionAttr:cart': '["apple"]',
        bucket: recorded,
        index: JSON.stringify([['principal', 'ann']]),
      });
      expect(await client.get(keys.shadow(id))).toBe('');
      expect(await client.smembers(keys.bucket(recorded))).toEqual([`expires:${id}`]);
      expect(await client.zrangebyscore(keys.bucketList, '-inf', '+inf', 'WITHSCORES')).toEqual([recorded, recorded]);
      expect(await client.zrange(keys.index('principal', 'ann'), '0', '-1')).toEqual([id]);
      expect(await client.pexpiretime(keys.session(id))).toBe((await client.pexpiretime(keys.shadow(id))) + GRACE);
      for (const key of [keys.bucketList, keys.bucket(recorded), keys.index('principal', 'ann')]) {
        expect(await client.pttl(key)).toBe(-1);
      }
    });

    it('rejects an id that is taken', async () => {
      const id = await store.create({ a: '1' });
      const times = { maxInactiveInterval: 60, absoluteTimeout: -1 };
      const again = { presentedIds: [], ...times, attributes: new Map([['a', '2']]), indexes: new Map() };
      expect(await store.scripts.create({ kind: 'create', id, ...again })).toEqual({ outcome: 'collision' });
      expect((await store.session(id))['sessionAttr:a']).toBe('1');
    });

    it('rejects a late request of a session that has just changed its id', async () => {
      const presentedId = await store.create({ a: '1' });
      await store.save(presentedId, { newId: store.id(presentedId) });
      const id = store.id(presentedId);
      const late = {
        kind: 'create',
        id,
        presentedIds: [store.id(presentedId), presentedId],
        maxInactiveInterval: 60,
        absoluteTimeout: -1,
        attributes: new Map(),
        indexes: new Map(),
      } as const;
      expect(await store.scripts.create(late)).toEqual({ outcome: 'gone' });
      expect(await store.session(id)).toEqual({});
    });

    it('ends a session at its absolute timeout when that comes first', async () => {
      const id = await store.create({ a: '1' }, { absoluteTimeout: 600 });
      const { absoluteExpiry, creationTime } = await store.session(id);
      expect(Number(absoluteExpiry)).toBe(Number(creationTime) + 600_000);
      expect(await store.client.pexpiretime(store.keysOf(id).shadow(id))).toBe(Number(absoluteExpiry));
      await store.scripts.touch(id);
      expect(await store.client.pexpiretime(store.keysOf(id).shadow(id))).toBe(Number(absoluteExpiry));
    });

    it('counts an absolute timeout that comes with a sign-out from the creation', async () => {
      const id = await store.create({ a: '1' }, { absoluteTimeout: 3600 });
      const created = Number((await store.session(id))['creationTime']);
      await store.client.hset(store.keysOf(id).session(id), 'authenticatedAt', created + 60_000);
      await store.save(id, { absoluteTimeout: 600, signsOut: true });
      expect(Number((await store.session(id))['absoluteExpiry'])).toBe(created + 600_000);
    });

    it('ends a session without an idle timeout at its absolute timeout', async () => {
      const id = await store.create({ a: '1' }, { interval: -1, absoluteTimeout: 600 });
      const { creationTime } = await store.session(id);
      expect(await store.client.pexpiretime(store.keysOf(id).shadow(id))).toBe(Number(creationTime) + 600_000);
      expect(await store.buckets(id)).toHaveLength(1);
    });

    it('puts a session without an end into no bucket', async () => {
      const id = await store.create({ a: '1' }, { interval: -1 });
      expect(await store.client.pttl(store.keysOf(id).session(id))).toBe(-1);
      expect(await store.client.pttl(store.keysOf(id).shadow(id))).toBe(-1);
      expect(await store.buckets(id)).toEqual([]);
    });

    it.each<[string, Record<string, string>, boolean, string[]]>([
      ['nobody has told what it wants', {}, false, ['created']],
      ['no group wants it', { a: '', b: 'deleted expired' }, false, []],
      ['one of the groups wants it', { a: '', b: 'expired created', c: 'deleted' }, false, ['created']],
      ['only broadcast handlers want it', { a: '' }, true, ['created']],
    ])('records `created` unless nobody wants it: %s', async (_, groups, broadcast, expected) => {
      for (const partition of store.partitions.all) {
        for (const [group, wish] of Object.entries(groups)) await store.client.hset(partition.wanted, group, wish);
        if (broadcast) await store.client.set(partition.broadcastWanted('created'), '');
      }
      const id = await store.create({ a: '1' });
      expect(await store.eventTypes(id)).toEqual(expected);
      await store.scripts.delete(id);
      expect(await store.eventTypes(id)).toEqual([...expected, 'deleted']);
      await store.client.flushall();
    });

    it('records its event when the wishes of groups are a stray key, which says nothing', async () => {
      for (const partition of store.partitions.all) await store.client.set(partition.wanted, 'x');
      expect(await store.eventTypes(await store.create({ a: '1' }))).toEqual(['created']);
      await store.client.flushall();
    });

    it('writes nothing when a key it needs has another type: an index set', async () => {
      const id = store.id();
      const planted = store.keysOf(id).index('principal', 'planted');
      await store.client.set(planted, 'x');
      const times = { maxInactiveInterval: 60, absoluteTimeout: -1 };
      const changes = { attributes: new Map(), indexes: new Map([['principal', 'planted']]) };
      const create = { kind: 'create', id, presentedIds: [], ...times, ...changes } as const;
      await expect(store.scripts.create(create)).rejects.toThrow('WRONGTYPE');
      expect(await store.session(id)).toEqual({});
      expect(await store.isAlive(id)).toBe(false);
      await store.client.del(planted);
    });
  });

  it.each([0, -2])('take-over-session stores nothing of an entry that has just ended: PTTL %d', async (timeToLive) => {
    const id = store.id();
    const session = { id, maxInactiveInterval: 60, absoluteTimeout: -1, attributes: new Map(), indexes: new Map() };
    expect(await store.scripts.takeOver(session, timeToLive)).toBe('gone');
    expect(await store.isAlive(id)).toBe(false);
    expect(await store.client.exists(store.keysOf(id).takeoverMark(id))).toBe(0);
  });

  describe('the scripts that save a session', () => {
    it('writes only changed fields', async () => {
      const id = await store.create({ a: '1', b: '2', c: '3' });
      expect(
        await store.save(id, {
          attributes: [
            ['b', '20'],
            ['c', null],
          ],
        }),
      ).toEqual({ outcome: 'saved' });
      expect(await store.session(id)).toMatchObject({ 'sessionAttr:a': '1', 'sessionAttr:b': '20' });
      expect(await store.session(id)).not.toHaveProperty('sessionAttr:c');
    });

    it('does not bring back a session that has ended', async () => {
      const id = await store.create({ a: '1' });
      await store.scripts.delete(id);
      expect(await store.save(id, { attributes: [['a', '2']] })).toEqual({ outcome: 'gone' });
      expect(await store.isAlive(id)).toBe(false);
      expect((await store.session(id))['sessionAttr:a']).toBe('1');
    });

    it('does not recreate the session hash of a shadow key that has lost it', async () => {
      const id = await store.create({ a: '1' });
      await store.client.del(store.keysOf(id).session(id));
      expect(await store.save(id, { attributes: [['a', '2']] })).toEqual({ outcome: 'gone' });
      expect(await store.session(id)).toEqual({});
      expect(await store.isAlive(id)).toBe(false);
    });

    it('moves a session with all its keys to a new id', async () => {
      const { client } = store;
      const id = await store.create({ a: '1' }, { principal: 'mover' });
      const keys = store.keysOf(id);
      const [bucket] = await store.buckets(id);
      const newId = store.id(id);
      expect(await store.save(id, { newId, attributes: [['b', '2']] })).toEqual({ outcome: 'saved' });
      expect(await store.session(id)).toEqual({});
      expect(await store.isAlive(id)).toBe(false);
      expect(await store.session(newId)).toMatchObject({ 'sessionAttr:a': '1', 'sessionAttr:b': '2' });
      expect(await store.buckets(newId)).toEqual([bucket]);
      expect(await store.buckets(id)).toEqual([]);
      expect(await client.zrange(keys.index('principal', 'mover'), '0', '-1')).toEqual([newId]);
      expect(await client.get(keys.forwardingMark(id))).toBe(newId);
      expect(await client.pttl(keys.forwardingMark(id))).toBeGreaterThan(0);
      expect(await store.events(newId)).toEqual([expect.objectContaining({ type: 'id-changed', previous: id })]);
    });

    it('moves a session without an end into no bucket', async () => {
      const id = await store.create({ a: '1' }, { interval: -1 });
      const newId = store.id(id);
      expect(await store.save(id, { newId })).toEqual({ outcome: 'saved' });
      expect(await store.buckets(newId)).toEqual([]);
      expect(await store.session(newId)).not.toHaveProperty('bucket');
    });

    it('forwards the attributes of a late save to the new id, and nothing else', async () => {
      const id = await store.create({ a: '1' });
      const newId = store.id(id);
      await store.save(id, { newId });
      expect(await store.save(id, { attributes: [['late', '1']] })).toEqual({ outcome: 'forwarded' });
      expect(await store.session(newId)).toMatchObject({ 'sessionAttr:late': '1' });
      expect(await store.session(id)).toEqual({});

      const before = await store.session(newId);
      expect(await store.save(id, { newId: store.id(id), attributes: [['x', '1']] })).toEqual({ outcome: 'gone' });
      expect(await store.save(id, { indexes: [['principal', 'eve']] })).toEqual({ outcome: 'gone' });
      expect(await store.save(id, { maxInactiveInterval: 9999 })).toEqual({ outcome: 'gone' });
      expect(await store.save(id, { absoluteTimeout: -1 })).toEqual({ outcome: 'gone' });
      expect(await store.session(newId)).toEqual(before);
      expect(await store.client.exists(store.keysOf(id).index('principal', 'eve'))).toBe(0);
    });

    it('reveals nothing of the session under its new id to a late request', async () => {
      const id = await store.create({ secret: '"before"' });
      const newId = store.id(id);
      await store.save(id, { newId, attributes: [['secret', '"of the victim"']] });
      const swap = (text: string) =>
        store.save(id, { attributes: [['secret', '"mine"']], expected: { name: 'secret', text } });
      expect(await swap('"before"')).toEqual({ outcome: 'gone' });
      expect((await store.session(newId))['sessionAttr:secret']).toBe('"of the victim"');
      expect(await swap('"of the victim"')).toEqual({ outcome: 'forwarded' });
    });

    it('gives a change of id that is sent twice the same reply', async () => {
      const id = await store.create({ a: '1' });
      const newId = store.id(id);
      expect(await store.save(id, { newId })).toEqual({ outcome: 'saved' });
      expect(await store.save(id, { newId })).toEqual({ outcome: 'saved' });
      expect(await store.eventTypes(newId)).toEqual(['id-changed']);
    });

    it('rejects a new id that is taken', async () => {
      const taken = await store.create({ a: '1' });
      const id = await store.create({ b: '1' }, { id: store.id(taken) });
      expect(await store.save(id, { newId: taken, attributes: [['b', '2']] })).toEqual({ outcome: 'collision' });
      expect((await store.session(id))['sessionAttr:b']).toBe('1');
    });

    it('compares and sets an attribute', async () => {
      const id = await store.create({ n: '1' });
      const swap = (text: string | undefined, next: string) =>
        store.save(id, { attributes: [['n', next]], expected: { name: 'n', text } });
      expect(await swap('1', '2')).toEqual({ outcome: 'saved' });
      expect(await swap('1', '3')).toEqual({ outcome: 'conflict', current: '2' });
      expect(await swap(undefined, '3')).toEqual({ outcome: 'conflict', current: '2' });
      // A concurrent request has counted from 1 to 2.
      expect(await swap('1', '2')).toEqual({ outcome: 'conflict', current: '2' });
      const first = store.save(id, { attributes: [['new', '1']], expected: { name: 'new', text: undefined } });
      expect(await first).toEqual({ outcome: 'saved' });
      const removal = { attributes: [['n', null]], expected: { name: 'n', text: '9' } } as const;
      expect(await store.save(id, removal)).toEqual({ outcome: 'conflict', current: '2' });
      expect(await store.save(id, { ...removal, expected: { name: 'n', text: '2' } })).toEqual({ outcome: 'saved' });
      const late = { attributes: [['n', '5']], expected: { name: 'n', text: '2' } } as const;
      expect(await store.save(id, late)).toEqual({ outcome: 'conflict', current: undefined });
    });

    it('keeps the index entries of a session exact', async () => {
      const { client } = store;
      const id = await store.create({}, { principal: 'old' });
      const keys = store.keysOf(id);
      await store.save(id, {
        indexes: [
          ['principal', 'young'],
          ['team', 'red'],
        ],
      });
      expect(await client.exists(keys.index('principal', 'old'))).toBe(0);
      expect(await client.zrange(keys.index('principal', 'young'), '0', '-1')).toEqual([id]);
      await store.save(id, { indexes: [['principal', '']] });
      expect(await client.exists(keys.index('principal', 'young'))).toBe(0);
      expect(await client.zrange(keys.index('team', 'red'), '0', '-1')).toEqual([id]);
      await store.scripts.delete(id);
      expect(await client.exists(keys.index('team', 'red'))).toBe(0);
    });

    it('moves the bucket member for an earlier end only', async () => {
      const id = await store.create({ a: '1' });
      const [first] = await store.buckets(id);
      await store.save(id, { maxInactiveInterval: 36_000 });
      expect(await store.buckets(id)).toEqual([first]);
      expect((await store.session(id))['maxInactiveInterval']).toBe('36000');
      expect(await store.client.pttl(store.keysOf(id).shadow(id))).toBeGreaterThan(35_000_000);
      await store.save(id, { maxInactiveInterval: 120 });
      const [second] = await store.buckets(id);
      expect(Number(second)).toBeLessThan(Number(first));
      expect(await store.client.pexpiretime(store.keysOf(id).session(id))).toBe(
        (await store.client.pexpiretime(store.keysOf(id).shadow(id))) + GRACE,
      );
      await store.save(id, { maxInactiveInterval: -1 });
      expect(await store.buckets(id)).toEqual([]);
      expect(await store.client.pttl(store.keysOf(id).session(id))).toBe(-1);
      await store.save(id, { maxInactiveInterval: 60 });
      expect(await store.buckets(id)).toHaveLength(1);
    });

    it('moves a session whose minute has passed to its right bucket', async () => {
      const id = await store.create({ a: '1' });
      const [bucket] = await store.buckets(id);
      // As if no sweeper had run for a long time.
      await store.client.srem(store.keysOf(id).bucket(bucket!), `expires:${id}`);
      await store.client.sadd(store.keysOf(id).bucket('60000'), `expires:${id}`);
      await store.client.zadd(store.keysOf(id).bucketList, 60000, '60000');
      await store.client.hset(store.keysOf(id).session(id), 'bucket', '60000');
      await store.scripts.touch(id);
      const [now] = await store.buckets(id);
      expect(Number(now)).toBeGreaterThanOrEqual(Number(bucket));
      expect(await store.client.zscore(store.keysOf(id).bucketList, '60000')).toBeNull();
    });

    it('counts an absolute timeout from the recorded creation time', async () => {
      const { client } = store;
      const id = await store.create({ a: '1' });
      const keys = store.keysOf(id);
      const creation = Number((await store.session(id))['creationTime']);
      const [first] = await store.buckets(id);
      expect(await store.save(id, { absoluteTimeout: 600 })).toEqual({ outcome: 'saved' });
      expect((await store.session(id))['absoluteExpiry']).toBe(String(creation + 600_000));
      expect(await client.pexpiretime(keys.shadow(id))).toBe(creation + 600_000);
      expect(await client.pexpiretime(keys.session(id))).toBe((await client.pexpiretime(keys.shadow(id))) + GRACE);
      expect(Number((await store.buckets(id))[0])).toBeLessThan(Number(first));

      expect(await store.save(id, { absoluteTimeout: -1 })).toEqual({ outcome: 'saved' });
      expect(await store.session(id)).not.toHaveProperty('absoluteExpiry');
      expect(await client.pttl(keys.shadow(id))).toBeGreaterThan(1_700_000);
    });

    it('records no access when the session is to stay idle', async () => {
      const { client } = store;
      const id = await store.create({ a: '1' });
      const keys = store.keysOf(id);
      await client.hincrby(keys.session(id), 'lastAccessedTime', -10 * MINUTE);
      await client.pexpire(keys.shadow(id), 20 * MINUTE);
      const accessed = (await store.session(id))['lastAccessedTime'];
      const end = await client.pexpiretime(keys.shadow(id));
      const newId = store.id(id);
      expect(await store.save(id, { attributes: [['a', '2']], newId, keepsIdle: true })).toEqual({ outcome: 'saved' });
      expect(await store.session(newId)).toMatchObject({ 'sessionAttr:a': '2', lastAccessedTime: accessed });
      expect(await client.pexpiretime(keys.shadow(newId))).toBe(end);

      // A new interval counts from the last access.
      expect(await store.save(newId, { maxInactiveInterval: 3600, keepsIdle: true })).toEqual({ outcome: 'saved' });
      expect(await client.pexpiretime(keys.shadow(newId))).toBe(Number(accessed) + 60 * MINUTE);
      expect(await store.save(newId, { maxInactiveInterval: 540, keepsIdle: true })).toEqual({ outcome: 'saved' });
      expect(await store.eventTypes(newId)).toEqual(['id-changed', 'expired']);
    });

    it('ends the session as expired when its absolute timeout has passed', async () => {
      const { client } = store;
      const id = await store.create({ a: '1' });
      const keys = store.keysOf(id);
      await client.hincrby(keys.session(id), 'creationTime', -MINUTE);
      expect(await store.save(id, { absoluteTimeout: 60, attributes: [['a', '2']] })).toEqual({ outcome: 'saved' });
      expect(await store.isAlive(id)).toBe(false);
      expect(await store.buckets(id)).toEqual([]);
      expect(await store.session(id)).toMatchObject({ ended: 'expired', 'sessionAttr:a': '2' });
      expect(await store.eventTypes(id)).toEqual(['created', 'expired']);
    });

    it('ends the session with its last attributes for an interval of 0', async () => {
      const id = await store.create({ a: '1' }, { principal: 'zero' });
      expect(await store.save(id, { maxInactiveInterval: 0, attributes: [['a', '2']] })).toEqual({ outcome: 'saved' });
      expect(await store.isAlive(id)).toBe(false);
      expect(await store.session(id)).toMatchObject({
        ended: 'deleted',
        maxInactiveInterval: '0',
        'sessionAttr:a': '2',
      });
      expect(await store.eventTypes(id)).toEqual(['created', 'deleted']);
    });

    it('never sets the last access back', async () => {
      const id = await store.create({ a: '1' });
      const future = String(Date.now() + 3_600_000);
      await store.client.hset(store.keysOf(id).session(id), 'lastAccessedTime', future);
      await store.save(id, { attributes: [['a', '2']] });
      expect((await store.session(id))['lastAccessedTime']).toBe(future);
    });

    it('writes no attribute when the bucket list is a stray key that it needs', async () => {
      const id = await store.create({ a: '1' });
      const keys = store.keysOf(id);
      const { bucketList } = keys;
      const [bucket] = await store.buckets(id);
      await store.client.srem(keys.bucket(bucket!), `expires:${id}`);
      await store.client.rename(bucketList, `${bucketList}:aside`);
      await store.client.set(bucketList, 'x');
      await expect(store.save(id, { attributes: [['a', '2']] })).rejects.toThrow(`WRONGTYPE ${bucketList} is a string`);
      expect(await store.session(id)).toMatchObject({ 'sessionAttr:a': '1' });
      await store.client.rename(`${bucketList}:aside`, bucketList);
    });

    it('writes nothing when a key it needs has another type', async () => {
      const id = await store.create({ a: '1' }, { principal: 'typed' });
      await store.client.set(store.keysOf(id).index('team', 'blue'), 'x');
      const save = store.save(id, { attributes: [['a', '2']], indexes: [['team', 'blue']], newId: store.id(id) });
      await expect(save).rejects.toThrow(`WRONGTYPE ${store.keysOf(id).index('team', '...')} is a string`);
      expect(await store.session(id)).toMatchObject({ 'sessionAttr:a': '1' });
      expect(await store.client.zrange(store.keysOf(id).index('principal', 'typed'), '0', '-1')).toEqual([id]);
    });
  });

  describe('touch-session', () => {
    it('renews a session under its current id', async () => {
      const id = await store.create({ a: '1' });
      const newId = store.id(id);
      await store.save(id, { newId });
      await store.client.pexpire(store.keysOf(id).shadow(newId), 5 * MINUTE);
      expect(await store.scripts.touch(id)).toEqual({ outcome: 'forwarded' });
      expect(await store.client.pttl(store.keysOf(id).shadow(newId))).toBeGreaterThan(1_700_000);
      await store.client.pexpire(store.keysOf(id).shadow(newId), 5 * MINUTE);
      expect(await store.scripts.touch(newId)).toEqual({ outcome: 'touched' });
      expect(await store.client.pttl(store.keysOf(id).shadow(newId))).toBeGreaterThan(1_700_000);
      expect(await store.scripts.touch(store.id())).toEqual({ outcome: 'gone' });
    });

    it('puts a session back that its bucket has lost', async () => {
      const id = await store.create({ a: '1' });
      const [bucket] = await store.buckets(id);
      await store.client.srem(store.keysOf(id).bucket(bucket!), `expires:${id}`);
      await store.scripts.touch(id);
      expect(await store.buckets(id)).toHaveLength(1);
    });

    it('creates nothing when there is no session', async () => {
      const id = store.id();
      expect(await store.scripts.touch(id)).toEqual({ outcome: 'gone' });
      expect(await store.session(id)).toEqual({});
      expect(await store.isAlive(id)).toBe(false);
    });

    it('deletes a shadow key that has lost its session hash', async () => {
      const id = await store.create({ a: '1' });
      await store.client.del(store.keysOf(id).session(id));
      expect(await store.scripts.touch(id)).toEqual({ outcome: 'gone' });
      expect(await store.isAlive(id)).toBe(false);
    });
  });

  describe('delete-session', () => {
    it('ends the session once, and keeps its data for the retention', async () => {
      const id = await store.create({ a: '1' }, { principal: 'leaver' });
      expect(await store.scripts.delete(id)).toEqual({ outcome: 'deleted' });
      expect(await store.scripts.delete(id)).toEqual({ outcome: 'gone' });
      expect(await store.session(id)).toMatchObject({
        ended: 'deleted',
        maxInactiveInterval: '1800',
        'sessionAttr:a': '1',
      });
      expect(await store.client.pttl(store.keysOf(id).session(id))).toBeGreaterThan(RETENTION - MINUTE);
      expect(await store.buckets(id)).toEqual([]);
      expect(await store.client.exists(store.keysOf(id).index('principal', 'leaver'))).toBe(0);
      expect(await store.eventTypes(id)).toEqual(['created', 'deleted']);
    });

    it('follows the session to its new id', async () => {
      const id = await store.create({ a: '1' });
      const newId = store.id(id);
      await store.save(id, { newId });
      expect(await store.scripts.delete(id)).toEqual({ outcome: 'forwarded' });
      expect(await store.isAlive(newId)).toBe(false);
      expect(await store.eventTypes(newId)).toContain('deleted');
    });
  });

  describe('claim-expired', () => {
    const claimIn = async (id: string, minute?: string) => {
      const [bucket] = await store.buckets(id);
      return store.scripts.claimExpired(store.keysOf(id), [`expires:${id}`], minute ?? bucket);
    };

    it('records an end once, with the data still there', async () => {
      const id = await store.create({ a: '1' }, { principal: 'sleeper' });
      const [bucket] = await store.buckets(id);
      await store.runOut(id);
      expect(await claimIn(id)).toMatchObject([{ outcome: 'claimed' }]);
      expect(await claimIn(id, bucket)).toMatchObject([{ outcome: 'already' }]);
      expect(await store.scripts.claimExpired(store.keysOf(id), [`expires:${id}`])).toMatchObject([
        { outcome: 'already' },
      ]);
      expect(await store.eventTypes(id)).toEqual(['created', 'expired']);
      expect(await store.session(id)).toMatchObject({
        ended: 'expired',
        'sessionAttr:a': '1',
        maxInactiveInterval: '1800',
      });
      expect(await store.client.exists(store.keysOf(id).index('principal', 'sleeper'))).toBe(0);
      expect(await store.buckets(id)).toEqual([]);
    });

    it.each([
      ['idle', { lastAccessedTime: -1_800_000, absoluteExpiry: 60_000 }],
      ['absolute', { lastAccessedTime: 0, absoluteExpiry: 0 }],
    ])('tells how long after the end by the %s timeout it claims a session, in ms', async (_timeout, from) => {
      const id = await store.create({ a: '1' }, { interval: 1800, absoluteTimeout: 3600 });
      const [late, session, begin] = [5000, store.keysOf(id).session(id), await store.now()];
      for (const [field, at] of Object.entries(from)) await store.client.hset(session, field, begin - late + at);
      await store.runOut(id);
      const [claim] = await claimIn(id);
      expect(claim!.delay).toBeGreaterThanOrEqual(late);
      expect(claim!.delay).toBeLessThanOrEqual(late + (await store.now()) - begin);
    });

    it('does not end a live session, and moves it to the minute of its end', async () => {
      const id = await store.create({ a: '1' }, { interval: 60 });
      const [early] = await store.buckets(id);
      await store.client.hset(store.keysOf(id).session(id), 'maxInactiveInterval', '1800');
      await store.scripts.touch(id);
      expect(await store.buckets(id)).toEqual([early]);
      expect(await claimIn(id)).toMatchObject([{ outcome: 'alive' }]);
      const [right] = await store.buckets(id);
      expect(Number(right)).toBeGreaterThan(Number(early) + 20 * MINUTE);
      expect((await store.session(id))['bucket']).toBe(right);
      expect(await claimIn(id)).toMatchObject([{ outcome: 'alive' }]);
      expect(await store.buckets(id)).toEqual([right]);
      expect(await store.eventTypes(id)).toEqual(['created']);
    });

    it('reports a session without data once, by the caller that removes its member', async () => {
      const id = await store.create({ a: '1' });
      const [bucket] = await store.buckets(id);
      await store.client.del(store.keysOf(id).session(id), store.keysOf(id).shadow(id));
      expect(await store.scripts.claimExpired(store.keysOf(id), [`expires:${id}`])).toMatchObject([
        { outcome: 'already' },
      ]);
      expect(await claimIn(id)).toMatchObject([{ outcome: 'claimed' }]);
      expect(await claimIn(id, bucket)).toMatchObject([{ outcome: 'already' }]);
      expect(await store.events(id)).toContainEqual(expect.objectContaining({ type: 'expired', dataLost: '1' }));
      expect(await store.eventTypes(id)).toEqual(['created', 'expired']);
    });

    it('moves members that it cannot claim to the dead letters, and claims the others', async () => {
      const { client } = store;
      const good = await store.create({ a: '1' });
      const keys = store.keysOf(good);
      const bad = await store.create({ a: '1' }, { id: store.id(good) });
      const [bucket] = await store.buckets(good);
      await store.runOut(good);
      await store.runOut(bad);
      await client.set(keys.session(bad), 'planted');
      await client.sadd(keys.bucket(bucket!), 'foreign');
      const members = [`expires:${bad}`, 'foreign', `expires:${good}`];
      expect(await store.scripts.claimExpired(keys, members, bucket)).toMatchObject([
        { outcome: 'corrupt' },
        { outcome: 'corrupt' },
        { outcome: 'claimed' },
      ]);
      expect(await client.sismember(keys.bucket(bucket!), 'foreign')).toBe(0);
      const letters = await client.xrange(keys.deadLetters, '-', '+');
      expect(letters.map(([, fields]) => fields[1])).toEqual([`expires:${bad}`, 'foreign']);
      expect(await store.eventTypes(good)).toEqual(['created', 'expired']);
    });

    it('keeps the newest dead letters when they take too many bytes', async () => {
      const { client, keys } = store;
      for (const key of await client.keys(`${keys.deadLetters}*`)) await client.del(key);
      const deadLetters = { maxSize: 30_000 };
      const few = new SessionScripts(client, store.partitions, { ...KEEPING_RULES, deadLetters });
      const members = Array.from({ length: 500 }, (_, i) => `foreign${i}`);
      await client.sadd(keys.bucket('60000'), ...members);
      const claims = await few.claimExpired(keys, members, '60000');
      expect(new Set(claims.map(({ outcome }) => outcome))).toEqual(new Set(['corrupt']));
      const kept = (await client.xrange(keys.deadLetters, '-', '+')).map(([, [, member]]) => member);
      expect(kept.length).toBeGreaterThan(50);
      expect(kept).toEqual(members.slice(-kept.length));
      expect(await client.hget(keys.lostDeadLetters, '')).toBe(`${500 - kept.length}`);
      for (const key of await client.keys(`${keys.deadLetters}*`)) await client.del(key);
    });

    it('keeps a session in its minute when it ends at the first millisecond of it', async () => {
      const id = await store.create({ a: '1' });
      const keys = store.keysOf(id);
      const minute = (Math.ceil((await store.now()) / MINUTE) + 10) * MINUTE;
      await store.client.pexpireat(keys.shadow(id), minute);
      // So many that the clock moves during the script.
      const members = Array.from({ length: 2000 }, () => `expires:${id}`);
      const [bucket] = await store.buckets(id);
      const claims = await store.scripts.claimExpired(keys, members, bucket);
      expect(new Set(claims.map(({ outcome }) => outcome))).toEqual(new Set(['alive']));
      expect(await store.buckets(id)).toEqual([String(minute + MINUTE)]);
    });

    it('removes a minute without a bucket from the bucket list', async () => {
      await store.client.zadd(store.keys.bucketList, 60000, '60000');
      expect(await store.scripts.claimExpired(store.keys, [], '60000')).toEqual([]);
      expect(await store.client.zscore(store.keys.bucketList, '60000')).toBeNull();
    });

    it('records nothing while a shared key has another type', async () => {
      const { client } = store;
      const id = await store.create({ a: '1' });
      const keys = store.keysOf(id);
      await store.runOut(id);
      await client.rename(keys.events, 'aside');
      await client.set(keys.events, 'planted');
      await expect(claimIn(id)).rejects.toThrow('WRONGTYPE');
      await client.rename('aside', keys.events);
      expect(await claimIn(id)).toMatchObject([{ outcome: 'claimed' }]);
    });

    it('claims, touches and deletes when Redis is out of memory, but does not create or save', async () => {
      const expired = await store.create({ a: '1' });
      const deleted = await store.create({ a: '1' });
      const ended = await store.create({ a: '1' });
      const kept = await store.create({ a: '1' });
      await store.runOut(expired);
      await store.client.config('SET', 'maxmemory', '1');
      try {
        expect(await claimIn(expired)).toMatchObject([{ outcome: 'claimed' }]);
        expect(await store.scripts.delete(deleted)).toEqual({ outcome: 'deleted' });
        const end = { maxInactiveInterval: 0, attributes: [['a', '2']] } as const;
        expect(await store.save(ended, end)).toEqual({ outcome: 'saved' });
        expect(await store.scripts.touch(kept)).toEqual({ outcome: 'touched' });
        await expect(store.save(kept, { attributes: [['a', '2']] })).rejects.toThrow('OOM');
        await expect(store.save(kept, { maxInactiveInterval: 60, attributes: [['a', '2']] })).rejects.toThrow('OOM');
      } finally {
        await store.client.config('SET', 'maxmemory', '0');
      }
      expect(await store.isAlive(ended)).toBe(false);
      expect(await store.session(ended)).toMatchObject({ ended: 'deleted', 'sessionAttr:a': '2' });
      expect(await store.eventTypes(ended)).toEqual(['created', 'deleted']);
      expect((await store.session(kept))['sessionAttr:a']).toBe('1');
    });
  });

  describe('take-cleanup-turn', () => {
    const take = (most = 100) => takeCleanupTurn(store, store.keys, most);
    beforeEach(() => store.client.flushall());

    it('finds nothing to do while all events are young and few', async () => {
      expect(await take()).toBe('clean');
      const { events } = store.keys;
      const [seconds] = await store.client.time();
      await store.client.xadd(events, `${(Number(seconds) - 30) * 1000}-0`, 'type', 'created');
      expect(await take()).toBe('clean');
      expect(await take(0)).toBe('due');
      await store.client.del(events);
      await store.client.xadd(events, '1-0', 'type', 'created');
      expect(await take()).toBe('due');
      await store.client.set(events, 'foreign');
      expect(await take()).toBe('due');
      await store.client.del(events);
      await store.client.xadd(store.keys.deadLetters, '*', 'reason', 'failed');
      expect(await take()).toBe('due');
    });
  });
});

it('a request counts as no younger than it is: it must not seem to begin after an end of all sessions', () => {
  expect(ageOf({ begunAt: performance.now() - 0.01 })).toBeGreaterThanOrEqual(1);
  expect(ageOf({ begunAt: undefined })).toBe('');
});
