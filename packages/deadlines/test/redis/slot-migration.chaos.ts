import { setTimeout as pause } from 'node:timers/promises';
import { deadline } from '@nest-session/deadlines';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisCluster, type RedisServer } from '@nest-session/testing';
import slotOf from 'cluster-key-slot';
import { Redis } from 'ioredis';
import { type DeadlineKeys, DeadlinePartitions, memberOf } from '../../src/redis/deadline-keys.js';
import { DeadlineInstance } from '../support/deadline.instance.js';
import { MINUTE } from '../../../session-redis/test/support/store.fixture.js';

LeakGuard.install();

const order = deadline<{ readonly total: number } | undefined>('order');

let cluster: RedisCluster;
let instance: DeadlineInstance;
beforeAll(async () => {
  cluster = await RedisCluster.start();
  instance = await DeadlineInstance.start({ redis: { cluster: { nodes: cluster.addresses } }, handles: [order] });
}, MINUTE);
afterAll(async () => {
  await instance.stop();
  await cluster.stop();
});

/** Does something while the slot of a deadline is about to move, and none of its keys has moved yet. */
async function duringMigration(
  key: string,
  action: (partition: DeadlineKeys, source: Redis, to: RedisServer) => Promise<void>,
): Promise<void> {
  const partition = new DeadlinePartitions('nest:deadlines', 64).of(memberOf(order.name, key));
  const slot = slotOf(partition.prefix);
  const from = await cluster.primaryOf(slot);
  const to = cluster.nodes.find((node) => node !== from)!;
  const [source, target] = [new Redis(from.url), new Redis(to.url)];
  try {
    await eventually(async () => expect(await source.exists(partition.events)).toBe(1));
    // All keys that a call names are there.
    await source.xadd(partition.deadLetters, '*', 'member', 'a stray key');
    await target.cluster('SETSLOT', slot, 'IMPORTING', (await source.cluster('MYID')) as string);
    await source.cluster('SETSLOT', slot, 'MIGRATING', (await target.cluster('MYID')) as string);
    await action(partition, source, to);
    await cluster.moveSlots([slot], to);
  } finally {
    source.disconnect();
    target.disconnect();
  }
}

it('a deadline that is replaced while its slot moves to another node is not lost', async () => {
  const { deadlines } = instance;
  await deadlines.schedule(order, '42', { in: '1h', data: { total: 30 } });
  const before = await deadlines.get(order, '42');
  await duringMigration('42', async () => {
    expect(await deadlines.schedule(order, '42', { in: '2h' })).toBe('replaced');
  });
  const after = await deadlines.get(order, '42');
  expect(after).toMatchObject({ key: '42', data: undefined });
  expect(after!.id).not.toBe(before!.id);
  expect(after!.dueAt).toBeGreaterThan(before!.dueAt);
  await deadlines.reschedule(order, '42', { in: '1ms' });
  await eventually(() => expect(instance.handled.map(({ id }) => id)).toContain(after!.id));
});

it('it is known that a deadline has fired whose time comes while its slot moves to another node', async () => {
  const { deadlines } = instance;
  await deadlines.schedule(order, '43', { in: '1h' });
  await duringMigration('43', async () => {
    expect(await deadlines.reschedule(order, '43', { in: '1ms' })).toBe('moved');
    await pause(500);
  });
  await eventually(() => expect(instance.keys).toContain('43'));
  expect(await deadlines.cancel(order, '43')).toBe('fired');
  expect(instance.keys.filter((key) => key === '43')).toHaveLength(1);
});

it('nothing is left of a dead letter that is discarded while its slot moves to another node', async () => {
  const { deadlines, events } = instance;
  instance.failures = Infinity;
  await deadlines.schedule(order, '44', { in: '1ms' });
  const { id } = await eventually(async () => {
    const letter = (await events.deadLetters()).find(({ event }) => event?.key === '44');
    expect(letter).toBeDefined();
    return letter!;
  });
  let discarding: Promise<boolean> | undefined;
  await duringMigration('44', async ({ events: stream, deadLetters }, source, to) => {
    await source.migrate('127.0.0.1', to.port, '', 0, 5000, 'KEYS', stream, deadLetters);
    discarding = events.discard(id);
    await pause(500);
  });
  expect(await discarding).toBe(true);
  const { prefix, deadLetterIndex } = new DeadlinePartitions('nest:deadlines', 64).of(memberOf(order.name, '44'));
  const client = new Redis((await cluster.primaryOf(slotOf(prefix))).url);
  try {
    expect(await client.zrange(deadLetterIndex, '0', '-1')).toEqual([]);
  } finally {
    client.disconnect();
  }
});
