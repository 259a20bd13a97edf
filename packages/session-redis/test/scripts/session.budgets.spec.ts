import { jest } from '@jest/globals';
import { commandStats } from '../support/command.stats.js';
import { type Changes, MINUTE, Store } from '../support/store.fixture.js';

let store: Store;
beforeAll(async () => {
  store = await Store.open();
});
afterAll(() => store.close());
beforeEach(() => store.client.flushall());

/** The commands that a script runs for a call, with how often each one is called. */
async function commandsOf(call: () => Promise<unknown>): Promise<Record<string, number>> {
  await store.client.config('RESETSTAT');
  await call();
  const stats = [...(await commandStats(store.client))].map(([name, { calls }]) => [name, calls] as const);
  const own = ['evalsha', 'config|resetstat', 'info'];
  return Object.fromEntries(stats.filter(([name]) => !own.includes(name)));
}

/** Makes Redis know the scripts, so that no call sends a script again. */
const loadScripts = async () => {
  const id = await store.create();
  await store.save(id, {});
  await store.scripts.touch(id);
  await store.save(id, { newId: store.id() });
  await store.scripts.delete(id);
  await store.scripts.claimExpired(store.keys, []);
};

/** A session in a bucket that has other members. */
async function openSession(principal?: string): Promise<string> {
  await loadScripts();
  await store.create();
  const id = await store.create({ a: '1', b: '2' }, { principal });
  // Not in the same millisecond: the time of the access is then written.
  await store.client.hincrby(store.keys.session(id), 'lastAccessedTime', -1000);
  return id;
}

const READ = { get: 1, hmget: 1, time: 1 };
const RENEWED = { ...READ, sismember: 1, pexpireat: 2 };

describe('runs no more commands than these for', () => {
  const save = async (changes: Changes) => {
    const id = await openSession();
    return commandsOf(() => store.save(id, changes));
  };

  it('a save of attributes', async () => {
    const attributes = [
      ['a', '2'],
      ['c', '3'],
    ] as const;
    expect(await save({ attributes })).toEqual({ ...RENEWED, hset: 1 });
  });

  it('a save of attributes, of which each argument costs time as well', async () => {
    const id = await openSession();
    const sent = jest.spyOn(store.client, 'sendCommand');
    await store.save(id, { attributes: [['a', '2']] });
    const [command] = sent.mock.lastCall!;
    sent.mockRestore();
    const [count] = String(command.toWritable({})).split('\r\n');
    // The command, the script, the number of keys, four keys, the arguments of every save, and a field with its text.
    expect(count).toBe(`*${1 + 1 + 1 + 4 + 5 + 2}`);
  });

  it('a save of attributes of a session with bounds, which is counted only near them, or for the first time', async () => {
    const bounds = { maxAttributes: 100, maxSessionSize: 1000 };
    const id = await openSession();
    const attributes = [['a', 'x'.repeat(99)]] as const;
    const first = await commandsOf(() => store.save(id, { attributes, bounds }));
    expect(first).toEqual({ ...RENEWED, hset: 1, hgetall: 1 });
    // The names and texts of all attributes, of which those of `b` have two bytes.
    expect(await store.session(id)).toMatchObject({ size: '102' });
    await store.client.hincrby(store.keys.session(id), 'lastAccessedTime', -1000);
    const later = await commandsOf(() => store.save(id, { attributes, bounds }));
    expect(later).toEqual({ ...RENEWED, hset: 1, hlen: 1 });
    // What is replaced still counts.
    expect(await store.session(id)).toMatchObject({ size: `${102 + 'sessionAttr:a'.length + 99}` });
    for (let saves = 0; saves < 30; saves++) await store.save(id, { attributes, bounds });
    const [size = ''] = await store.client.hmget(store.keys.session(id), 'size');
    expect(Number(size)).toBeLessThanOrEqual(1000);
  });

  it('a save that removes attributes', async () => {
    expect(await save({ attributes: [['a', null]] })).toEqual({ ...RENEWED, hset: 1, hdel: 1 });
  });

  it('a save that compares and sets an attribute', async () => {
    const changes = { attributes: [['a', '2']], expected: { name: 'a', text: '1' } } as const;
    expect(await save(changes)).toEqual({ ...RENEWED, hget: 1, hset: 1 });
  });

  it('a save that keeps the session idle', async () => {
    expect(await save({ attributes: [['a', '2']], keepsIdle: true })).toEqual({ get: 1, hmget: 1, hset: 1 });
  });

  it('a touch', async () => {
    const id = await openSession();
    expect(await commandsOf(() => store.scripts.touch(id))).toEqual({ ...RENEWED, hset: 1 });
  });

  it('a creation', async () => {
    await openSession();
    const reads = { exists: 1, hvals: 1, time: 1, scard: 1, zscore: 1 };
    const writes = { xadd: 1, hset: 1, set: 1, pexpireat: 1, sadd: 1 };
    expect(await commandsOf(() => store.create({ a: '1', b: '2' }))).toEqual({ ...reads, ...writes });
  });

  it('a creation that replaces a presented session, in a minute without a bucket', async () => {
    await loadScripts();
    const create = () =>
      store.scripts.create({
        kind: 'create',
        id: store.id(),
        presentedIds: [store.id()],
        maxInactiveInterval: 1800,
        absoluteTimeout: -1,
        attributes: new Map(),
        indexes: new Map([['principal', 'ann']]),
      });
    const reads = { exists: 2, hvals: 1, time: 1, scard: 1, zcard: 1, zscore: 1, zrange: 1 };
    const writes = { xadd: 1, hset: 1, set: 1, pexpireat: 1, sadd: 1, zadd: 2 };
    expect(await commandsOf(create)).toEqual({ ...reads, ...writes });
  });

  it('a change of id', async () => {
    const id = await openSession();
    const reads = { ...RENEWED, exists: 1 };
    const writes = { hset: 1, sadd: 1, srem: 1, rename: 2, set: 1, xadd: 1 };
    const newId = store.id();
    expect(await commandsOf(() => store.save(id, { newId }))).toEqual({ ...reads, ...writes });
  });

  it('a sign-in', async () => {
    const id = await openSession();
    const reads = { ...RENEWED, exists: 1, hget: 1, hkeys: 1, hvals: 1 };
    const writes = { hset: 1, sadd: 1, srem: 1, rename: 2, set: 1, xadd: 2 };
    const times = { maxInactiveInterval: 1800, absoluteTimeout: -1 };
    const changes = { newId: store.id(), signIn: { butNot: ['captcha'] }, ...times };
    expect(await commandsOf(() => store.save(id, changes))).toEqual({ ...reads, ...writes });
  });

  it('a sign-in of a request, which asks once whether all sessions of the user were ended meanwhile', async () => {
    const create = (begunAt?: number) =>
      store.scripts.create({
        kind: 'create',
        id: store.id(),
        presentedIds: [],
        maxInactiveInterval: 1800,
        absoluteTimeout: -1,
        attributes: new Map(),
        indexes: new Map([['principal', 'ann']]),
        begunAt,
      });
    await openSession();
    await create();
    const outside = await commandsOf(() => create());
    expect(await commandsOf(() => create(performance.now()))).toEqual({ ...outside, get: 1 });
    const signIn = async (begunAt?: number) => {
      const id = await openSession();
      const times = { maxInactiveInterval: 1800, absoluteTimeout: -1 };
      const indexes = [['principal', 'bob']] as const;
      const changes = { newId: store.id(), signIn: { butNot: [] }, ...times, indexes, begunAt };
      return commandsOf(() => store.save(id, changes));
    };
    const { get = 0, ...others } = await signIn();
    expect(await signIn(performance.now())).toEqual({ ...others, get: get + 1 });
  });

  it('a deletion', async () => {
    const id = await openSession('ann');
    const writes = { xadd: 1, srem: 1, zrem: 1, del: 1, hset: 1, pexpire: 1 };
    const reads = { ...READ, scard: 1, zcard: 1, hvals: 1 };
    expect(await commandsOf(() => store.scripts.delete(id))).toEqual({ ...reads, ...writes });
  });

  it('a claim, of which a part is shared by a batch', async () => {
    const ids = [await openSession(), ...(await Promise.all([1, 2, 3, 4].map(() => store.create({ a: '1' }))))];
    const [minute] = await store.buckets(ids[0]!);
    for (const id of ids) await store.runOut(id);
    const claim = () =>
      store.scripts.claimExpired(
        store.keys,
        ids.map((id) => `expires:${id}`),
        minute,
      );
    const shared = { time: 1, zcard: 1, xlen: 2, smismember: 1, srem: 1, exists: 1, hvals: 1 };
    const each = { get: 5, hmget: 5, hset: 5, pexpire: 5, xadd: 5 };
    expect(await commandsOf(claim)).toEqual({ ...shared, ...each });
  });
});

it('saves more attributes than Lua passes to one command', async () => {
  const id = await store.create({ a: '1' });
  const names = Array.from({ length: 9000 }, (_, i) => `attribute${i}`);
  expect(await store.save(id, { attributes: names.map((name) => [name, '1']) })).toEqual({ outcome: 'saved' });
  expect(Object.keys(await store.session(id)).filter((field) => field.startsWith('sessionAttr:'))).toHaveLength(9001);
  expect(await store.save(id, { attributes: names.map((name) => [name, null]) })).toEqual({ outcome: 'saved' });
  expect(await store.session(id)).toMatchObject({ 'sessionAttr:a': '1' });
  expect(Object.keys(await store.session(id))).toHaveLength(5);
});

it('writes times exactly, however far in the future they are', async () => {
  const id = await store.create({}, { interval: 9_000_000_000_000 / 1000 });
  const end = await store.client.pexpiretime(store.keys.shadow(id));
  expect(end).toBe(Number((await store.session(id))['creationTime']) + 9_000_000_000_000);
  const [bucket] = await store.buckets(id);
  expect(Number(bucket)).toBe(Math.floor((end + MINUTE) / MINUTE) * MINUTE);
});
