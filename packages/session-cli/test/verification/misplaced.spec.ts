import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import { repartition } from '@nest-session/cli';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { resolveRedisSessionOptions } from '../../../session-redis/src/configuration/redis-session.options.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { type VerifiedStore, verify } from '../../src/verification/verify.js';
import { fill } from '../../../session-redis/test/support/filled.store.js';
import { hashOfValue } from '../../../session-redis/test/support/hash-of-value.js';
import { exactDump, expectAlike } from '../../../session-redis/test/support/exact.dump.js';
import { dump } from '../../../session-redis/test/support/store.dump.js';
import { MINUTE, Store } from '../../../session-redis/test/support/store.fixture.js';
import { DeadlinesToVerify } from './deadline-plants.js';
import { copyElsewhere, misplace } from './session-plants.js';

LeakGuard.install();

function storeOf({ client, partitions, expirations }: Store): VerifiedStore {
  return { client, partitions, options: resolveRedisSessionOptions({ expirations }) };
}

describe.each(['buckets', 'sorted-set'] as const)(
  'a session in another partition than its id says, %s',
  (expirations) => {
    let store: Store;
    let id: string;
    beforeEach(async () => {
      store = await Store.open({ partitions: 4, expirations });
      await store.client.hset(store.partitions.meta, { version: '3', partitions: 4, holds: 'sessions' });
      id = store.id();
      const indexes = new Map([[PRINCIPAL_NAME_INDEX_NAME, hashOfValue('eve')]]);
      const session = { kind: 'create', presentedIds: [], maxInactiveInterval: 1800, absoluteTimeout: -1 } as const;
      await store.scripts.create({ ...session, id, indexes, attributes: new Map([['a', '1']]) });
    });
    afterEach(() => store.close());

    const check = (repair: boolean) => verify(storeOf(store), { repair });

    it('ends with an event there, with its data', async () => {
      const keys = await misplace(store, id);
      expect(await check(true)).toMatchObject({ findings: [{ rule: 'session-misplaced', examples: [id] }], left: [] });
      const due = (await store.now()) + MINUTE;
      const minutes = await store.client.zrangebyscore(keys.bucketList, '-inf', due);
      for (const minute of minutes) await store.scripts.claimExpired(keys, [`expires:${id}`], minute);
      if (expirations === 'sorted-set') await store.scripts.claimDue(keys, 10);
      const events = await store.client.xrange(keys.events, '-', '+');
      expect(events.map(([, fields]) => fields.slice(0, 4))).toEqual([['type', 'expired', 'session', id]]);
      expect(await store.client.hgetall(keys.session(id))).toMatchObject({ 'sessionAttr:a': '1', ended: 'expired' });
      expect((await check(false)).findings).toEqual([]);
    });

    it('is removed without an event when it is a copy, and the session stays as it is', async () => {
      const before = await dump(store.client);
      const keys = await copyElsewhere(store, id);
      expect(await check(true)).toMatchObject({ findings: [{ rule: 'session-misplaced', examples: [id] }], left: [] });
      expect(await store.client.exists(keys.session(id), keys.shadow(id))).toBe(0);
      expect(await dump(store.client)).toEqual(before);
    });

    it('is removed without an event when the session has ended where its id says, which stays as it is', async () => {
      const keys = await copyElsewhere(store, id);
      await store.scripts.delete(id);
      const there = await store.client.keys(`${keys.prefix}*`);
      const before = await exactDump(store.client, there);
      expect(await check(true)).toMatchObject({ findings: [{ rule: 'session-misplaced', examples: [id] }], left: [] });
      expect(await store.client.keys(`${keys.prefix}*`)).toEqual([]);
      expectAlike(await exactDump(store.client), before);
    });

    it('is found no more once it has ended or has run out', async () => {
      const keys = await misplace(store, id);
      await store.client.del(keys.shadow(id));
      expect((await check(false)).findings).not.toContainEqual(expect.objectContaining({ rule: 'session-misplaced' }));
      await store.client.hset(keys.session(id), 'ended', 'expired');
      expect((await check(false)).findings).not.toContainEqual(expect.objectContaining({ rule: 'session-misplaced' }));
    });
  },
);

it('no session is found misplaced while they are being moved to another number of partitions', async () => {
  const store = await Store.open({ partitions: 3 });
  try {
    await fill(store.client, store.partitions, 'buckets', 20);
    const stopping = new AbortController();
    const onProgress = ({ moved }: { moved: number }) => moved > 0 && stopping.abort();
    const moving = repartition({ url: store.server.url }, { to: 2, signal: stopping.signal, onProgress });
    await expect(moving).rejects.toThrow('aborted');
    const misplaced = async (count: number) => {
      const partitions = new SessionPartitions('nest:session', count);
      const { findings } = await verify({ ...storeOf(store), partitions });
      return findings.filter(({ rule }) => rule === 'session-misplaced');
    };
    expect([await misplaced(3), await misplaced(2)]).toEqual([[], []]);
    // The record alone says that it is on the way.
    await store.client.hset(store.partitions.meta, 'partitions', '3');
    expect(await misplaced(3)).toHaveLength(1);
  } finally {
    await store.close();
  }
});

describe('a deadline in another partition than its key says', () => {
  let deadlines: DeadlinesToVerify;
  beforeEach(async () => {
    deadlines = await DeadlinesToVerify.open(4);
  });
  afterEach(() => deadlines.close());

  const check = (repair: boolean) => verify(deadlines.store, { repair });
  const misplaced = [{ rule: 'deadline-misplaced', count: 1, examples: [expect.any(String)] }];

  it.each(['data', 'encrypted data', 'none'] as const)(
    'moves to its partition as it is, and waits nowhere else, with %s',
    async (data) => {
      const { client, hash } = deadlines;
      if (data !== 'encrypted data') await client.hdel(hash, 'dataKey', 'traceparent');
      if (data === 'none') await client.hdel(hash, 'data');
      const before = await exactDump(client);
      await deadlines.misplace();
      expect(await check(true)).toMatchObject({ findings: misplaced, left: [] });
      expect(await exactDump(client)).toEqual(before);
    },
  );

  it('is removed when another one waits there under its key, which stays', async () => {
    const { client, member } = deadlines;
    const before = await exactDump(client);
    const keys = await deadlines.copyElsewhere();
    await client.hset(keys.deadline(member), { id: 'another', data: 'BBBB', dataKey: '1:another' });
    expect(await check(true)).toMatchObject({ findings: misplaced, left: [] });
    expect(await exactDump(client)).toEqual(before);
  });

  it('fires where it is when it is due within a minute', async () => {
    await deadlines.schedule('victim', MINUTE / 2);
    const keys = await deadlines.misplace();
    expect((await check(true)).findings).toEqual([]);
    expect(await deadlines.client.hget(keys.deadline(deadlines.member), 'key')).toBe('victim');
  });
});
