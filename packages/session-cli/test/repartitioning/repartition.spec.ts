import { Injectable } from '@nestjs/common';
import { IndexedSessionRepository, OnSessionEvent, SessionEvent } from '@nest-session/core';
import { SessionExpirationSweeper } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { resolveRedisSessionOptions } from '../../../session-redis/src/configuration/redis-session.options.js';
import { LivingInstances } from '../../../redis-events/src/namespace/living-instances.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { repartition } from '../../src/index.js';
import { verify } from '../../src/verification/verify.js';
import { EventInstance } from '../../../session-redis/test/support/event-instance.fixture.js';
import { runCommand } from '../support/command.process.js';
import { contentOf, fill, HASH } from '../../../session-redis/test/support/filled.store.js';
import { describeMoves } from '../support/repartition.suite.js';
import { MINUTE, Store } from '../../../session-redis/test/support/store.fixture.js';

LeakGuard.install();

const ONE = new SessionPartitions('nest:session');

let store: Store;
beforeAll(async () => {
  store = await Store.open();
});
beforeEach(() => store.client.flushall());
afterAll(() => store.close());

const url = () => store.server.url;
const recorded = () => store.client.hget(ONE.meta, 'partitions');
const partitionsOf = (count: number) => new SessionPartitions('nest:session', count);
const start = (partitions: number, providers: (typeof Handlers)[] = []) =>
  EventInstance.start({ redis: { url: url(), partitions, events: { consume: providers.length > 0 } }, providers });

@Injectable()
class Handlers {
  readonly heard: [type: string, id: string, cart: unknown][] = [];
  isBroken = false;

  @OnSessionEvent(SessionEvent)
  handle({ type, sessionId, session }: SessionEvent) {
    if (this.isBroken) throw new Error('broken');
    this.heard.push([type, sessionId, session.getAttribute('cart')]);
  }
}

// `repartition-variants.chaos.ts` has other numbers.
describeMoves('buckets', {
  moves: [
    [1, 4],
    [3, 2],
  ],
  interrupted: [[1, 2]],
});
describeMoves('sorted-set', { moves: [[1, 4]] });

it('the bytes of dead letters are noted in their new partitions, whatever their letters', async () => {
  const { client } = store;
  await client.hset(ONE.meta, { version: '3', partitions: 1, holds: 'sessions' });
  const letter = { group: 'g', reason: 'größer 中', handler: 'H.h', type: 'created', session: store.id() };
  await client.xadd(ONE.all[0]!.deadLetters, '*', ...Object.entries(letter).flat());
  await repartition({ url: url() }, { to: 2 });
  const verified = { client, partitions: partitionsOf(2), options: resolveRedisSessionOptions({}) };
  expect((await verify(verified, { repair: false, rate: 1_000_000 })).findings).toEqual([]);
});

// In the other two moves, the first partition has the same keys before and after.
it.each([
  [1, 4],
  [2, 4],
  [4, 3],
])('a revocation mark and the latest epoch are in every partition afterwards, from %d to %d', async (from, to) => {
  await fill(store.client, partitionsOf(from), 'buckets');
  // A call that failed may have reached some of them, and in none is there anything left to end.
  for (const [i, { epoch }] of partitionsOf(from).all.entries()) {
    await store.client.hset(epoch, { at: 7 - i, ended: 7 - i });
  }
  await repartition({ url: url() }, { to });
  for (const keys of partitionsOf(to).all) {
    expect(await store.client.ttl(keys.revocationMark('principal', HASH))).toBeGreaterThan(0);
    // Each instance ends the older sessions once more, wherever they are.
    expect(await store.client.hgetall(keys.epoch)).toEqual({ at: '7' });
  }
});

it('a ledger moves to the partition of its principal, and is dropped with one partition, which has none', async () => {
  await fill(store.client, partitionsOf(4), 'buckets');
  await repartition({ url: url() }, { from: 4, to: 64 });
  expect(await store.client.hgetall(partitionsOf(64).of(HASH).ledger(HASH))).toEqual({ a: '1' });
  await repartition({ url: url() }, { from: 64, to: 1 });
  expect(await store.client.exists(ONE.of(HASH).ledger(HASH))).toBe(0);
});

it('leaves other namespaces alone that begin with its name', async () => {
  const others = ['events', 'moving', 'sessions', 'ledger'].map(
    (name) => new SessionPartitions(`nest:session:${name}`),
  );
  for (const other of others) await fill(store.client, other, 'buckets');
  const names = await store.client.keys('*');
  const contents = () =>
    Promise.all(names.map(async (key) => [key, (await store.client.dumpBuffer(key))?.toString('base64')]));
  const before = await contents();
  await fill(store.client, ONE, 'buckets');
  const content = await contentOf(store.client, ONE, names);
  await repartition({ url: url() }, { to: 4 });
  await repartition({ url: url() }, { to: 1 });
  expect(await contents()).toEqual(before);
  expect(await contentOf(store.client, ONE, names)).toEqual(content);
});

it('is refused while an instance is alive, also one without handlers, and then leaves everything as it was', async () => {
  const instance = await start(1);
  try {
    const [name] = await store.client.zrange(ONE.instances, '0', '-1');
    await expect(repartition({ url: url() }, { from: 1, to: 4 })).rejects.toThrow(
      `The sessions in namespace "nest:session" cannot move while instances are alive: ${JSON.stringify(name)}. ` +
        'Stop all of them, and run this again.',
    );
    expect(await recorded()).toBe('1');
  } finally {
    await instance.stop();
  }
  expect(await store.client.exists(ONE.instances)).toBe(0);
  expect(await repartition({ url: url() }, { from: 1, to: 4 })).toEqual({ moved: 0 });
  expect(await recorded()).toBe('4');
});

it('goes on with none of its steps while an instance is alive', async () => {
  await fill(store.client, ONE, 'buckets');
  const stopping = new AbortController();
  const onProgress = ({ step }: { step: string }) => step === 'sessions' && stopping.abort();
  await expect(repartition({ url: url() }, { to: 4, signal: stopping.signal, onProgress })).rejects.toThrow('aborted');
  const keysOfSessions = async () => (await store.client.keys('*sessions:*')).toSorted();
  const before = await keysOfSessions();
  const [seconds] = await store.client.time();
  await store.client.zadd(ONE.instances, Number(seconds) * 1000, 'an instance');
  await expect(repartition({ url: url() }, { to: 4 })).rejects.toThrow('while instances are alive: "an instance"');
  expect(before.length).toBeGreaterThan(0);
  expect(await keysOfSessions()).toEqual(before);
  await store.client.del(ONE.instances);
  await repartition({ url: url() }, { to: 4 });
});

it('an instance that was cut off during the move logs that it has the old number of partitions', async () => {
  const instance = await start(1);
  try {
    // As if it had not reached Redis for a minute.
    const [name] = (await store.client.zrange(ONE.instances, '0', '-1')) as [string];
    await store.client.zincrby(ONE.instances, -MINUTE, name);
    await repartition({ url: url() }, { from: 1, to: 4 });
    await instance.module.get(LivingInstances, { strict: false }).runOnce();
    await eventually(() => expect(EventInstance.log.matching(/^error .*are in 4 partitions/)).toHaveLength(1));
  } finally {
    await instance.stop();
  }
});

it('no instance starts until it has finished, and only one with the new number then', async () => {
  await fill(store.client, ONE, 'buckets');
  const stopping = new AbortController();
  const onProgress = ({ step }: { step: string }) => step === 'sessions' && stopping.abort();
  const moving = repartition({ url: url() }, { to: 4, signal: stopping.signal, onProgress });
  await expect(moving).rejects.toThrow('aborted');
  expect(await recorded()).toBe('1>4>keys');
  for (const count of [1, 4]) {
    await expect(start(count)).rejects.toThrow(
      'are being moved from 1 to 4 partitions. Run `nest-session repartition --from 1 --to 4` until it has ' +
        'finished, and set option `partitions` to 4.',
    );
  }
  // Instances that were refused are not alive.
  await repartition({ url: url() }, { from: 1, to: 4 });
  await expect(start(1)).rejects.toThrow(
    'are in 4 partitions, but option `partitions` is 1. Set it to 4, or use another namespace. To move them, stop all ' +
      'instances and run `nest-session repartition --from 4 --to 1`.',
  );
  await (await start(4)).stop();
});

it('the command prints what it has done', async () => {
  const id = await store.create({ cart: '"apple"' });
  // It has ended, and only its data is kept.
  await store.client.del(ONE.of(id).shadow(await store.create({ cart: '"pear"' })));
  await store.client.hset(ONE.meta, 'version', '3', 'partitions', '1');
  const { stdout, stderr } = await runCommand(`repartition --from 1 --to 4 --url ${url()}`);
  expect([stdout, stderr]).toEqual([
    '1 session moved\n' +
      'All sessions are in 4 partitions. Set the option partitions to 4, and start the applications.\n',
    '',
  ]);
  expect(await store.client.exists(partitionsOf(4).of(id).shadow(id))).toBe(1);
});

it.each([
  ['0', '--to must be from 1 to 1024, but is 0. '],
  ['1025', '--to must be from 1 to 1024, but is 1025. '],
  ['1', '--from and --to must be different numbers.\n'],
])('the command refuses to move from 1 to %s partitions, in its own words', async (to, problem) => {
  const { code, stderr } = await runCommand(`repartition --from 1 --to ${to} --url ${url()}`);
  expect([code, stderr.slice(0, problem.length)]).toEqual([1, problem]);
});

it.each([
  ['numbers that are equal', { from: 4, to: 4 }, 'must be different numbers'],
  ['a number that is out of range', { from: 1, to: 2000 }, '`partitions`'],
  ['another number than there is', { from: 2, to: 4 }, 'are in 1 partition, not in 2'],
])('%s are refused, and nothing is recorded', async (_, counts, problem) => {
  await store.client.hset(ONE.meta, 'version', '3', 'partitions', '1');
  await expect(repartition({ url: url() }, counts)).rejects.toThrow(problem);
  expect(await recorded()).toBe('1');
});

it('another target is refused while a move has not finished, and so is an unused namespace', async () => {
  await expect(repartition({ url: url() }, { to: 4 })).rejects.toThrow('No application has started');
  await store.client.hset(ONE.meta, 'version', '3', 'partitions', '1>4>drop');
  await expect(repartition({ url: url() }, { to: 8 })).rejects.toThrow('are being moved from 1 to 4 partitions');
  expect(await recorded()).toBe('1>4>drop');
});

it('a key of another type holds up no other one, is named, and moves when it has been removed', async () => {
  await fill(store.client, ONE, 'buckets');
  const foreign = `nest:session:index:principal:${HASH}`;
  await store.client.set(foreign, 'x');
  await expect(repartition({ url: url() }, { to: 4 })).rejects.toThrow(
    `1 keys have another type, for example "${foreign}"`,
  );
  expect(await store.client.keys('nest:session:sessions:*')).toEqual([]);
  expect(await recorded()).toBe('1>4>keys');
  await store.client.del(foreign);
  await repartition({ url: url() }, { to: 4 });
  await contentOf(store.client, partitionsOf(4));
});

it.each([
  [1, 4],
  [4, 1],
])('each end is handled once, with its data, when applications start again, from %d to %d', async (from, to) => {
  const before = await start(from, [Handlers]);
  before.module.get(Handlers).isBroken = true;
  const repository = before.module.get(IndexedSessionRepository);
  const ids: string[] = [];
  for (let i = 0; i < 40; i++) {
    const session = repository.createSession();
    session.setAttribute('cart', i);
    session.principalName = 'ann';
    await session.save();
    ids.push(session.id);
  }
  // Ten have ended, ten have run out meanwhile, and twenty live on.
  for (const id of ids.slice(0, 10)) await repository.deleteById(id);
  const failing = () => Promise.all(partitionsOf(from).all.map((keys) => store.client.hlen(keys.failing('default'))));
  await eventually(async () => (await failing()).some((count) => count > 0));
  await before.stop();
  for (const id of ids.slice(10, 20)) await store.client.del(partitionsOf(from).of(id).shadow(id));

  await repartition({ url: url() }, { from, to });

  const after = await start(to, [Handlers]);
  try {
    await after.module.get(SessionExpirationSweeper).runOnce({ ahead: 60 * MINUTE });
    const { heard } = after.module.get(Handlers);
    const ends = () =>
      heard.filter(([type]) => type === 'deleted' || type === 'expired').sort(([, a], [, b]) => (a < b ? -1 : 1));
    await eventually(() => ends().length >= 20);
    const expected = ids.slice(0, 20).map((id, i) => [i < 10 ? 'deleted' : 'expired', id, i]);
    expect(ends()).toEqual(expected.sort(([, a], [, b]) => (a! < b! ? -1 : 1)));
    const moved = after.module.get(IndexedSessionRepository);
    expect(await moved.countByIndex('principal', 'ann')).toBe(20);
    expect((await moved.findById(ids[20]!))?.getAttribute('cart')).toBe(20);
  } finally {
    await after.stop();
  }
});
