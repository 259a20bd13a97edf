import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { GroupLagReader } from '../../src/delivery/group-states.js';
import { EventInstance } from '../../../session-redis/test/support/event-instance.fixture.js';
import { Store } from '../../../session-redis/test/support/store.fixture.js';

LeakGuard.install();

describe.each([1, 2])('the lags of groups with %d partitions', (partitions) => {
  let store: Store;
  let instance: EventInstance;
  let reader: GroupLagReader;
  beforeAll(async () => {
    store = await Store.open({ partitions });
    const redis = { url: store.server.url, partitions, notifications: 'off', events: { consume: false } } as const;
    instance = await EventInstance.start({ redis });
    reader = instance.module.get(GroupLagReader, { strict: false });
  });
  beforeEach(async () => {
    const { all } = store.partitions;
    await store.client.del(...all.flatMap((keys) => [keys.events, keys.dropped, keys.lostDeadLetters]));
  });
  afterAll(async () => {
    await instance.stop();
    await store.close();
  });

  const inEach = async (act: (keys: Store['keys']) => Promise<unknown>) => {
    for (const keys of store.partitions.all) await act(keys);
  };
  const add = (keys: Store['keys'], position: string) => store.client.xadd(keys.events, position, 'type', 'created');

  it('are none where there is no group', async () => {
    expect(await reader.read()).toEqual([]);
    await inEach((keys) => add(keys, '*'));
    expect(await reader.read()).toEqual([]);
  });

  it('have the numbers of all partitions, and the age of the oldest unread event, by the clock of Redis', async () => {
    const old = (await store.now()) - 90_000;
    await inEach(async (keys) => {
      for (const [i, sequence] of ['1', '2', '3'].entries()) await add(keys, `${old + 1000 * i}-${sequence}`);
      await store.client.xgroup('CREATE', keys.events, 'web', '$');
      await store.client.xgroup('CREATE', keys.events, 'mail', `${old}-1`);
      await store.client.hset(keys.dropped, 'mail', 4);
      await store.client.hset(keys.lostDeadLetters, 'web', 5);
    });
    // One partition is further behind.
    await store.client.xgroup('SETID', store.keys.events, 'mail', '0');
    const [mail, web, ...others] = await reader.read();
    const none = {
      lag: 0,
      oldestUnreadAge: 0,
      pending: 0,
      retrying: 0,
      deadLetters: 0,
      dropped: 0,
      lostDeadLetters: 0,
    };
    expect(others).toEqual([]);
    expect(web).toEqual({ ...none, name: 'web', lostDeadLetters: 5 * partitions });
    const { oldestUnreadAge, ...numbers } = mail!;
    expect({ ...numbers, oldestUnreadAge: 0 }).toEqual({
      ...none,
      name: 'mail',
      lag: 2 * partitions + 1,
      dropped: 4 * partitions,
    });
    expect(oldestUnreadAge).toBeGreaterThanOrEqual(90_000);
    expect(oldestUnreadAge).toBeLessThan(120_000);
  });

  it('count unread events that others between them have made room for', async () => {
    await inEach(async (keys) => {
      for (let i = 1; i <= 5; i++) await add(keys, `${i}-0`);
      await store.client.xgroup('CREATE', keys.events, 'mail', '1-0');
      await store.client.xdel(keys.events, '3-0');
    });
    expect(await reader.read()).toMatchObject([{ name: 'mail', lag: 3 * partitions }]);
  });

  it('have the numbers of what a group has read, of its retries and of its dead letters', async () => {
    await inEach(async (keys) => {
      for (let i = 1; i <= 3; i++) await add(keys, `${i}-0`);
      await store.client.xgroup('CREATE', keys.events, 'mail', '0');
      await store.client.xreadgroup('GROUP', 'mail', 'a', 'COUNT', 2, 'STREAMS', keys.events, '>');
      await store.client.zadd(keys.retries('mail'), 1, '1-0');
      const letters = ['mail\nA.on\n1-000000\n9', 'mail\nB.on\n2-000000\n9', 'mailer\nA.on\n3-000000\n9'];
      for (const letter of letters) await store.client.zadd(keys.deadLetterIndex, 0, letter);
    });
    const numbers = { lag: partitions, pending: 2 * partitions, retrying: partitions, deadLetters: 2 * partitions };
    expect(await reader.read()).toMatchObject([{ name: 'mail', ...numbers }]);
    await inEach((keys) => store.client.del(keys.retries('mail'), keys.deadLetterIndex));
  });

  it('count at most 100 unread events in each partition', async () => {
    await inEach(async (keys) => {
      const pipeline = store.client.pipeline();
      for (let i = 0; i < 150; i++) pipeline.xadd(keys.events, '*', 'type', 'created');
      await pipeline.exec();
      await store.client.xgroup('CREATE', keys.events, 'mail', '0');
    });
    expect(await reader.read()).toMatchObject([{ name: 'mail', lag: 100 * partitions }]);
  });

  it('are 0 when the clock of Redis was set back', async () => {
    const ahead = (await store.now()) + 60_000;
    await inEach(async (keys) => {
      await add(keys, `${ahead}-0`);
      await store.client.xgroup('CREATE', keys.events, 'mail', '0');
    });
    expect(await reader.read()).toMatchObject([{ name: 'mail', lag: partitions, oldestUnreadAge: 0 }]);
  });

  it('cannot be read where a stray key is in the place of the events', async () => {
    await store.client.set(store.keys.events, 'stray');
    await eventually(() => expect(reader.read()).rejects.toThrow('WRONGTYPE'));
  });
});
