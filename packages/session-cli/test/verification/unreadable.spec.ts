import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { resolveRedisSessionOptions } from '../../../session-redis/src/configuration/redis-session.options.js';
import { toSessionRecord } from '../../../session-redis/src/repository/session-hash.js';
import { verify } from '../../src/verification/verify.js';
import { calledCommand } from '../support/called.command.js';
import { hashOfValue } from '../../../session-redis/test/support/hash-of-value.js';
import { dump } from '../../../session-redis/test/support/store.dump.js';
import { Store } from '../../../session-redis/test/support/store.fixture.js';

LeakGuard.install();

let store: Store;
beforeAll(async () => {
  store = await Store.open();
});
afterAll(() => store.close());
beforeEach(async () => {
  await store.client.flushall();
  await store.client.hset(store.partitions.meta, { version: '3', partitions: 1, holds: 'sessions', ids: 'hashed' });
});

const FIELDS = ['creationTime', 'lastAccessedTime', 'maxInactiveInterval', 'authenticatedAt', 'device', 'index'];

const check = (repair = false) =>
  verify(
    { client: store.client, partitions: store.partitions, options: resolveRedisSessionOptions({}) },
    { repair, rate: 1_000_000 },
  );

describe.each(FIELDS)('a session whose field %s', (field) => {
  it.each([
    ['is not there', undefined],
    ['is none', 'garbage'],
  ])('%s is found, mended and shown as over if no request finds it, and left alone otherwise', async (_, text) => {
    const [id, other] = [await store.create({ a: '1' }), await store.create({ a: '1' })];
    const key = store.keysOf(id).session(id);
    await (text === undefined ? store.client.hdel(key, field) : store.client.hset(key, field, text));
    const isLost = toSessionRecord(id, await store.client.hgetall(key)) === undefined;
    const before = await dump(store.client);
    const found = [{ rule: 'session-unreadable', count: 1, examples: [id] }];
    expect((await check()).findings).toEqual(isLost ? found : []);
    const shown = JSON.parse(await calledCommand(['show', id, '--url', store.server.url])) as object;
    expect(shown).toMatchObject({ live: !isLost });
    expect(await dump(store.client)).toEqual(before);
    // It ends now, and so its recorded end was late.
    const repaired = isLost ? expect.arrayContaining(found) : [];
    expect(await check(true)).toMatchObject({ findings: repaired, left: [] });
    expect([await store.isAlive(id), await store.isAlive(other)]).toEqual([!isLost, true]);
    if (!isLost) expect(await dump(store.client)).toEqual(before);
  });
});

describe('a stray key in the place of', () => {
  type Keys = ReturnType<Store['keysOf']>;
  const PLACES: readonly (readonly [string, (keys: Keys, id: string) => string])[] = [
    ['a session hash', (keys, id) => keys.session(id)],
    ['a shadow key', (keys, id) => keys.shadow(id)],
  ];

  it.each(PLACES)('%s hides no other session of the user, and is shown as what it is', async (_, place) => {
    const indexes = new Map([[PRINCIPAL_NAME_INDEX_NAME, hashOfValue('eve')]]);
    const session = { kind: 'create', presentedIds: [], maxInactiveInterval: 1800, absoluteTimeout: -1 } as const;
    const [other, id] = [store.id(), store.id()];
    for (const each of [other, id])
      await store.scripts.create({ ...session, id: each, indexes, attributes: new Map() });
    const key = place(store.keysOf(id), id);
    await store.client.del(key);
    await store.client.sadd(key, 'stray');
    const before = await dump(store.client);
    const called = async (...words: string[]) =>
      JSON.parse(await calledCommand([...words, '--url', store.server.url])) as object;
    expect(await called('list', '--user', 'eve')).toEqual({
      total: 2,
      sessions: [expect.objectContaining({ id: other })],
    });
    expect(await called('show', other)).toMatchObject({ id: other, live: true });
    await expect(called('show', id)).rejects.toThrow('Something else has written a key that is ours: run `nest-');
    expect(await dump(store.client)).toEqual(before);
  });
});
