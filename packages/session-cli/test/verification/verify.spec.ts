import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { resolveRedisSessionOptions } from '../../../session-redis/src/configuration/redis-session.options.js';
import { RULES } from '../../src/verification/rules.js';
import { VerificationScripts } from '../../src/scripts/verification/verification.scripts.js';
import type { Rule } from '../../src/verification/rules.js';
import { type Verification, type VerifiedStore, verify } from '../../src/verification/verify.js';
import { hashOfValue } from '../../../session-redis/test/support/hash-of-value.js';
import { exactDump, expectAlike } from '../../../session-redis/test/support/exact.dump.js';
import { dump } from '../../../session-redis/test/support/store.dump.js';
import { MINUTE, Store } from '../../../session-redis/test/support/store.fixture.js';
import { calledCommand } from '../support/called.command.js';
import { DEADLINE_PLANTS, DeadlinesToVerify, OTHER_DEADLINE_PLANTS } from './deadline-plants.js';
import { EVENT_PLANTS, FURTHER_PLANTS, readOne, SESSION_PLANTS } from './session-plants.js';

LeakGuard.install();

const EVE = hashOfValue('eve');
const PLANTS: typeof FURTHER_PLANTS = [
  ...Object.entries({ ...SESSION_PLANTS, ...EVENT_PLANTS }).map(
    ([rule, plant]) => [rule, plant, rule as Rule] as const,
  ),
  ...FURTHER_PLANTS,
];

/** Whether a plant needs no more partitions than there are. */
const canGrow =
  (partitions: number) =>
  ([, { needsSeveral }]: readonly [string, { readonly needsSeveral?: true }, ...unknown[]]) =>
    !needsSeveral || partitions > 1;

function storeOf({ client, partitions, expirations }: Store): VerifiedStore {
  return { client, partitions, options: resolveRedisSessionOptions({ expirations }) };
}

describe.each([
  { partitions: 1, expirations: 'buckets' },
  { partitions: 4, expirations: 'sorted-set' },
] as const)('verify(), partitions: $partitions, expirations: $expirations', ({ partitions, expirations }) => {
  let store: Store;
  let others: string[];

  beforeAll(async () => {
    store = await Store.open({ partitions, expirations });
  });
  afterAll(() => store.close());
  beforeEach(async () => {
    await store.client.flushall();
    await store.client.hset(store.partitions.meta, { version: '3', partitions, holds: 'sessions' });
    others = await Promise.all(Array.from({ length: 12 }, createSession));
  });

  function createSession(): Promise<string> {
    const indexes = new Map([[PRINCIPAL_NAME_INDEX_NAME, EVE]]);
    const id = store.id();
    const session = { kind: 'create', presentedIds: [], maxInactiveInterval: 1800, absoluteTimeout: -1 } as const;
    return store.scripts.create({ ...session, id, indexes, attributes: new Map([['a', '1']]) }).then(() => id);
  }

  const check = (repair = false) => verify(storeOf(store), { repair, rate: 1_000_000 });
  const rules = (findings: readonly { readonly rule: Rule }[]) => findings.map(({ rule }) => rule);

  it('keeps a stray key that it sets aside for thirty days', async () => {
    const { client, keys } = store;
    await client.set(keys.epoch, 'stray');
    await check(true);
    const aside = `${keys.prefix}stray:epoch`;
    expect(await client.get(aside)).toBe('stray');
    const left = (await client.pttl(aside)) / (24 * 60 * MINUTE);
    expect(left).toBeGreaterThan(29.9);
    expect(left).toBeLessThanOrEqual(30);
  });

  it('finds no fault with a key that has gone since it was found', async () => {
    const keys = store.keysOf(others[0]!);
    const scripts = new VerificationScripts(store.client, true);
    const gone = keys.session(store.id(others[0]!));
    expect(await scripts.find('verify-keys', [gone], keys.prefix, 1000, 'hash', 'any')).toEqual([]);
  });

  it('finds nothing in a healthy store, and changes nothing', async () => {
    await store.scripts.delete(others[0]!);
    const gone = await store.create({}, { interval: 1 });
    await store.create({}, { interval: -1 });
    await readOne(store, gone, 'host:1');
    for (const [, { prepare }] of FURTHER_PLANTS) await prepare?.(store, await createSession());
    await store.save(others[1]!, { newId: store.id(others[1]!) });
    for (const keys of store.partitions.all) await store.scripts.raiseEpoch(keys, 5);
    await eventually(async () => expect(await store.isAlive(gone)).toBe(false));
    const before = await exactDump(store.client);
    expect(await check()).toMatchObject({ findings: [], left: [] });
    expect((await check(true)).findings).toEqual([]);
    expectAlike(await exactDump(store.client), before);
  });

  const plants = PLANTS.filter(([, { only = expirations }]) => only === expirations).filter(canGrow(partitions));

  it.each(plants)(
    'finds %s and mends it, and touches no other session',
    async (_, { prepare, plant, with: besides = [] }, rule) => {
      const victim = await createSession();
      await prepare?.(store, victim);
      await plant(store, victim);
      const before = await dump(store.client);
      const found = await check();
      expect(rules(found.findings)).toEqual([rule, ...besides].toSorted());
      expect(await dump(store.client)).toEqual(before);
      const untouched = await snapshots(others);
      const { findings, left } = await check(true);
      expect(rules(findings)).toContain(rule);
      expect(left).toEqual([]);
      expect((await check()).findings).toEqual([]);
      expect(await snapshots(others)).toEqual(untouched);
    },
  );

  it.each(plants.filter(([, { restores }]) => restores === true || restores === expirations))(
    'mends %s by what there was before, to the score and the time to live',
    async (_, { prepare, plant }) => {
      const victim = await createSession();
      await lives(victim);
      await prepare?.(store, victim);
      const before = await exactDump(store.client);
      await plant(store, victim);
      await check(true);
      expectAlike(await exactDump(store.client), before);
    },
  );

  /** Nothing of it has happened at one time: it was created, was signed in to, and was used again. */
  async function lives(id: string): Promise<void> {
    const keys = store.keysOf(id);
    const now = Number((await store.session(id))['lastAccessedTime']);
    const authenticatedAt = now - 60 * MINUTE;
    await store.client.hset(keys.session(id), { creationTime: now - 90 * MINUTE, authenticatedAt });
    await store.client.zadd(keys.index(PRINCIPAL_NAME_INDEX_NAME, EVE), authenticatedAt, id);
  }

  it('finds what is wrong when Redis is out of memory, and mends it', async () => {
    const planted = ['minute-without-bucket', 'wrong-type'] as const;
    for (const rule of planted) await SESSION_PLANTS[rule]!.plant(store, await createSession());
    await store.client.config('SET', 'maxmemory', '1');
    try {
      expect(rules((await check()).findings)).toEqual(expect.arrayContaining([...planted]));
      expect((await check(true)).left).toEqual([]);
    } finally {
      await store.client.config('SET', 'maxmemory', '0');
    }
  });

  it('counts what it finds, and names three', async () => {
    const victims = await Promise.all(Array.from({ length: 5 }, createSession));
    for (const id of victims) await store.client.zrem(store.keysOf(id).index(PRINCIPAL_NAME_INDEX_NAME, EVE), id);
    const { findings, looked } = await check();
    expect(findings).toEqual([{ rule: 'index-entry-missing', count: 5, examples: expect.any(Array) }]);
    expect(findings[0]!.examples).toHaveLength(3);
    expect(victims).toEqual(expect.arrayContaining([...findings[0]!.examples]));
    expect(looked).toBeGreaterThan(40);
  });

  it('looks at no more in a second than it may, and can be ended', async () => {
    const began = performance.now();
    await verify(storeOf(store), { rate: 100 });
    // 12 sessions have at least 3 keys and entries each.
    expect(performance.now() - began).toBeGreaterThan(350);
    const signal = AbortSignal.abort(new Error('enough'));
    await expect(verify(storeOf(store), { signal })).rejects.toThrow('enough');
  });

  it('leaves keys of other namespaces alone that begin with this one', async () => {
    await store.client.set(`${store.partitions.namespace}:other:sessions:${'a'.repeat(43)}`, 'x');
    await store.client.hset(`${store.partitions.namespace}2:sessions:${'a'.repeat(43)}`, 'a', 'x');
    expect((await check()).findings).toEqual([]);
  });

  async function snapshots(ids: readonly string[]) {
    return Promise.all(
      ids.map(async (id) => ({
        fields: await store.session(id),
        alive: await store.client.pexpiretime(store.keysOf(id).shadow(id)),
        hash: await store.client.pexpiretime(store.keysOf(id).session(id)),
        buckets: await store.buckets(id),
        due: await store.due(id),
        score: await store.client.zscore(store.keysOf(id).index(PRINCIPAL_NAME_INDEX_NAME, EVE), id),
      })),
    );
  }
});

describe.each([1, 4])('verify() of deadlines, partitions: %i', (partitions) => {
  let deadlines: DeadlinesToVerify;
  beforeEach(async () => {
    deadlines = await DeadlinesToVerify.open(partitions);
  });
  afterEach(() => deadlines.close());

  const check = (repair = false) => verify(deadlines.store, { repair });

  it('finds nothing where all is well', async () => {
    expect((await check()).findings).toEqual([]);
  });

  const PLANTS_OF_DEADLINES = [...Object.entries(DEADLINE_PLANTS), ...OTHER_DEADLINE_PLANTS];
  it.each(PLANTS_OF_DEADLINES.filter(canGrow(partitions)))(
    'finds %s and mends it, and leaves everything as it was before',
    async (rule, { plant, changes, with: besides = [] }) => {
      const sound = await exactDump(deadlines.client);
      await plant(deadlines);
      const before = await exactDump(deadlines.client);
      expect(before).not.toEqual(sound);
      expect((await check()).findings.map((each) => each.rule)).toEqual([rule, ...besides].toSorted());
      expect(await exactDump(deadlines.client)).toEqual(before);
      expect(await check(true)).toMatchObject({ left: [] });
      expect((await check()).findings).toEqual([]);
      const mended = await exactDump(deadlines.client);
      if (changes) expect(deadlines.ofOthers(mended)).toEqual(deadlines.ofOthers(sound));
      else expect(mended).toEqual(sound);
    },
  );
});

it('leaves nothing of an index that was replaced while 40 sessions name it, also where the look at it comes last', async () => {
  const store = await Store.open();
  try {
    await store.client.hset(store.partitions.meta, { version: '3', partitions: 1, holds: 'sessions' });
    const principal = await hashOfLastIndex(store);
    const ids = await Promise.all(Array.from({ length: 40 }, () => store.create({}, { principal })));
    const index = store.keys.index(PRINCIPAL_NAME_INDEX_NAME, principal);
    await store.client.set(index, 'foreign');
    const called = async (...words: string[]) =>
      JSON.parse(await calledCommand(['verify', '--url', store.server.url, ...words])) as Verification;
    // The sessions that were looked at before had no index that could get them.
    const { findings, left } = await called('--repair');
    expect([findings.map(({ rule }) => rule), left]).toEqual([expect.arrayContaining(['wrong-type']), []]);
    expect((await store.client.zrange(index, '0', '-1')).toSorted()).toEqual(ids.toSorted());
    expect((await called()).findings).toEqual([]);
  } finally {
    await store.close();
  }
});

/** The hash of a name whose index comes behind almost all keys in a scan. */
async function hashOfLastIndex({ client, keys }: Store): Promise<string> {
  const hashes = Array.from({ length: 200 }, (_, i) => hashOfValue(`user-${i}`));
  const names = hashes.map((hash) => keys.index(PRINCIPAL_NAME_INDEX_NAME, hash));
  await client.mset(names.flatMap((name) => [name, '']));
  const [, found] = await client.scan('0', 'COUNT', 1000);
  await client.del(names);
  return hashes[names.indexOf(found.filter((name) => names.includes(name)).at(-1)!)]!;
}

it('every rule has a plant', () => {
  const planted = Object.keys({ ...SESSION_PLANTS, ...EVENT_PLANTS, ...DEADLINE_PLANTS });
  expect(planted.toSorted()).toEqual(Object.keys(RULES).toSorted());
});

it('gives a session whose end nothing noticed an event with its data', async () => {
  const store = await Store.open();
  try {
    const id = await store.create({ a: '1' });
    const [bucket] = await store.buckets(id);
    await store.client.srem(store.keys.bucket(bucket!), `expires:${id}`);
    await store.runOut(id);
    await verify(storeOf(store), { repair: true });
    const [placed] = await store.buckets(id);
    expect(Number(placed)).toBeLessThanOrEqual((await store.now()) + 2 * MINUTE);
    await store.scripts.claimExpired(store.keys, [`expires:${id}`], placed);
    expect(await store.eventTypes(id)).toEqual(['created', 'expired']);
    expect(await store.session(id)).toMatchObject({ 'sessionAttr:a': '1', ended: 'expired' });
  } finally {
    await store.close();
  }
});

it('gives a session that should have ended long ago, and had no end, an event with its data', async () => {
  const store = await Store.open();
  try {
    const id = await store.create({ a: '1' });
    const keys = store.keysOf(id);
    // As after a restore without times to live.
    await store.client.persist(keys.shadow(id));
    await store.client.persist(keys.session(id));
    await store.client.hset(keys.session(id), 'lastAccessedTime', (await store.now()) - 600 * MINUTE);
    const { findings } = await verify(storeOf(store), { repair: true });
    expect(findings.map(({ rule }) => rule)).toContain('session-never-ends');
    expect(await store.isAlive(id)).toBe(false);
    const [placed] = await store.buckets(id);
    await store.scripts.claimExpired(store.keys, [`expires:${id}`], placed);
    expect(await store.events(id)).toMatchObject([{ type: 'created' }, { type: 'expired' }]);
    expect(await store.session(id)).toMatchObject({ 'sessionAttr:a': '1', ended: 'expired' });
  } finally {
    await store.close();
  }
});
