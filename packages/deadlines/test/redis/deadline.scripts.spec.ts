import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { DeadlinePartitions, memberOf } from '../../src/redis/deadline-keys.js';
import { DeadlineScripts } from '../../src/scripts/deadlines/deadline.scripts.js';

LeakGuard.install();

const NAME = 'order.payment-due';

let redis: RedisServer;
let client: Redis;
beforeAll(async () => {
  redis = await RedisServer.start();
  client = new Redis(redis.url);
});
afterAll(async () => {
  client.disconnect();
  await redis.stop();
});

it('a call that fires for broadcast handlers removes few events, although far more than `maxLength` are there', async () => {
  const [keys] = new DeadlinePartitions('nest:deadlines', 1).all;
  const scripts = new DeadlineScripts(client);
  await client.set(`${keys!.wanted}:broadcast:${NAME}`, '');
  const events = client.pipeline();
  for (let i = 0; i < 1000; i++) events.xadd(keys!.events, '*', 'type', 'deadline');
  await events.exec();
  const ids = Array.from({ length: 30 }, (_, i) => `${i}`);
  const deadlines = ids.map((id) => {
    const data = { text: '1', dataKey: undefined };
    return { member: memberOf(NAME, id), key: id, id, due: { in: 0 }, ifExists: 'replace', data } as const;
  });
  await scripts.schedule(keys!, NAME, deadlines, 100);
  const rules = { batchSize: 10, maxLength: 5, knownFor: 60_000, maxDeadLetterSize: 1_000_000 };
  for (const left of [990, 980, 970]) {
    const { entries, isFull } = await scripts.fire(keys!, rules);
    expect(isFull).toBe(false);
    expect(entries.map(({ outcome }) => outcome)).toEqual(Array(10).fill('claimed'));
    expect(await client.xlen(keys!.events)).toBe(left);
  }
});

it('a full stream drops nothing that a group wants which has not been created yet', async () => {
  await client.flushall();
  const [keys] = new DeadlinePartitions('nest:deadlines', 1).all;
  const scripts = new DeadlineScripts(client);
  await client.hset(keys!.wanted, 'mails', NAME);
  const deadlines = Array.from({ length: 30 }, (_, i) => {
    const data = { text: '1', dataKey: undefined };
    const id = `${i}`;
    return { member: memberOf(NAME, id), key: id, id, due: { in: 0 }, ifExists: 'replace', data } as const;
  });
  await scripts.schedule(keys!, NAME, deadlines, 100);
  const rules = { batchSize: 10, maxLength: 10, knownFor: 60_000, maxDeadLetterSize: 1_000_000 };
  expect(await scripts.fire(keys!, rules)).toMatchObject({ isFull: false });
  const recorded = await client.xrange(keys!.events, '-', '+');
  for (let i = 0; i < 2; i++) expect(await scripts.fire(keys!, rules)).toMatchObject({ isFull: true, entries: [] });
  expect(recorded).toHaveLength(10);
  expect(await client.xrange(keys!.events, '-', '+')).toEqual(recorded);
});

describe('the event of a deadline', () => {
  const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const [keys] = new DeadlinePartitions('nest:deadlines', 1).all;
  const rules = { batchSize: 10, maxLength: 100, knownFor: 60_000, maxDeadLetterSize: 1_000_000 };
  const member = memberOf(NAME, 'a');
  const NO_DATA = { text: undefined, dataKey: undefined };

  it.each([
    { what: 'no data', with: { data: NO_DATA }, fields: [] },
    { what: 'a trace', with: { data: NO_DATA, traceparent: TRACE }, fields: ['traceparent', TRACE] },
    { what: 'data', with: { data: { text: '', dataKey: undefined } }, fields: ['value', ''] },
    {
      what: 'all of it',
      with: { data: { text: 'AAAA', dataKey: '1:key' }, traceparent: TRACE },
      fields: ['traceparent', TRACE, 'value', 'AAAA', 'dataKey', '1:key'],
    },
  ])('has what the deadline had, and the groups that wanted it then: $what', async ({ with: what, fields }) => {
    await client.flushall();
    const scripts = new DeadlineScripts(client);
    const deadline = { member, key: 'a', id: 'id of a', due: { at: 5 }, ifExists: 'replace', ...what } as const;
    await scripts.schedule(keys!, NAME, [deadline], 100);
    await client.hset(keys!.wanted, { wants: `other ${NAME}`, 'wants other': 'other', 'wants nothing': '' });
    const { entries, now } = await scripts.fire(keys!, rules);
    expect(entries).toMatchObject([{ outcome: 'claimed' }]);
    const [[, event]] = (await client.xrange(keys!.events, '-', '+')) as [[string, string[]]];
    const usual = ['type', 'deadline', 'name', NAME, 'at', `${now}`, 'id', 'id of a', 'key', 'a', 'due', '5'];
    expect(event).toEqual([...usual, ...fields, 'groups', '["wants"]']);
    expect(await client.hgetall(keys!.deadline(member))).toEqual({ fired: 'id of a' });
    expect(await client.exists(keys!.names, keys!.due(NAME))).toBe(0);
  });
});

it('a call that fires gives every name that is due the same share of it', async () => {
  await client.flushall();
  const [keys] = new DeadlinePartitions('nest:deadlines', 1).all;
  const scripts = new DeadlineScripts(client);
  const names = ['a', 'b', 'c', 'd'];
  await client.hset(keys!.wanted, 'default', names.join(' '));
  for (const name of names) {
    const deadlines = Array.from({ length: 10 }, (_, i) => {
      const data = { text: undefined, dataKey: undefined };
      const member = memberOf(name, `${i}`);
      return { member, key: `${i}`, id: `${i}`, due: { at: i + 1 }, ifExists: 'replace', data } as const;
    });
    await scripts.schedule(keys!, name, deadlines, 100);
  }
  const rules = { batchSize: 12, maxLength: 100, knownFor: 60_000, maxDeadLetterSize: 1_000_000 };
  const { entries, next } = await scripts.fire(keys!, rules);
  expect(entries.map(({ time }) => time).toSorted()).toEqual(['1', '2', '3'].flatMap((each) => Array(4).fill(each)));
  expect(next).toBe(0);
  expect(await client.zrange(keys!.names, '0', '-1', 'WITHSCORES')).toEqual(names.flatMap((name) => [name, '4']));
});
