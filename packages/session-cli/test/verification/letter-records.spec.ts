import { LeakGuard } from '@nest-session/test-infrastructure';
import { resolveRedisSessionOptions } from '../../../session-redis/src/configuration/redis-session.options.js';
import { verify } from '../../src/verification/verify.js';
import { exactDump } from '../../../session-redis/test/support/exact.dump.js';
import { HandlingGroup } from '../../../session-redis/test/support/handled-events.js';
import { Store } from '../../../session-redis/test/support/store.fixture.js';

LeakGuard.install();

const KIND = 'default\nReminders.mail';

/** How the records of dead letters break: their index, and the bytes of each kind. */
const BREAKAGES: Readonly<Record<string, (store: Store, index: string, sizes: string) => Promise<unknown>>> = {
  'the index lacks one': ({ client }, index) => client.zpopmin(index),
  'the index is gone': ({ client }, index) => client.del(index),
  'the index has one that is gone': ({ client }, index) => client.zadd(index, 0, `${KIND}\n5-000001\n100`),
  'the index has something else': ({ client }, index) => client.zadd(index, 0, 'planted'),
  'the bytes are too few': ({ client }, _, sizes) => client.hincrby(sizes, KIND, -1),
  'the bytes are too many': ({ client }, _, sizes) => client.hincrby(sizes, KIND, 1_000_000),
  'the bytes of a kind are missing': ({ client }, _, sizes) => client.hdel(sizes, KIND),
  'there are bytes of a kind that has no letters': ({ client }, _, sizes) => client.hset(sizes, 'gone\nA.b', 500),
  'all bytes are missing': ({ client }, _, sizes) => client.del(sizes),
  'both are gone': ({ client }, ...keys) => client.del(...keys),
};

describe.each([1, 4])('a repair of the records of dead letters, partitions: %i', (partitions) => {
  let store: Store;
  beforeEach(async () => {
    store = await Store.open({ partitions });
    await store.client.hset(store.partitions.meta, { version: '3', partitions, holds: 'sessions' });
    for (const name of ['default', 'other']) {
      const group = await HandlingGroup.create(store, name);
      for (const keys of store.partitions.all) {
        for (const data of ['{}', '{"a":"ä\n€"}', '{"a":"1"}'])
          await group.record(keys, { type: 'deleted', session: store.id(), data }, 'dead');
      }
    }
  });
  afterEach(() => store.close());

  it.each(Object.entries(BREAKAGES))('makes them what they were: %s', async (_, breaks) => {
    const { client } = store;
    const before = await exactDump(client);
    const { deadLetters, deadLetterIndex } = store.partitions.all.at(-1)!;
    await breaks(store, deadLetterIndex, `${deadLetters}:sizes`);
    expect(await exactDump(client)).not.toEqual(before);
    const asked = { client, partitions: store.partitions, options: resolveRedisSessionOptions({}) };
    const { findings, left } = await verify(asked, { repair: true });
    expect(findings).not.toEqual([]);
    expect(left).toEqual([]);
    expect(await exactDump(client)).toEqual(before);
  });
});
