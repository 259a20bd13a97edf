import { Injectable, type Type } from '@nestjs/common';
import { OnSessionEvent, SessionDeletedEvent } from '@nest-session/core';
import { SessionEventGroups } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { EventTrimmer } from '../../../redis-events/src/delivery/event.trimmer.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { MINUTE, type SteppableStore, Store } from '../support/store.fixture.js';
import { trimOnce } from '../support/trim-once.js';

LeakGuard.install();

const DAY = 24 * 60 * MINUTE;

let store: SteppableStore;
let instance: EventInstance;
let groups: SessionEventGroups;
let trimmer: EventTrimmer;
beforeAll(async () => {
  store = await Store.openSteppable();
});
afterEach(async () => {
  await instance.stop();
  EventInstance.log.lines.splice(0);
  await store.client.flushall();
});
afterAll(() => store.close());

/** Fails on what clients can put into their sessions. */
@Injectable()
class Reminders {
  @OnSessionEvent(SessionDeletedEvent)
  remind({ session }: SessionDeletedEvent) {
    if (String(session.getAttribute('cart')).startsWith('x')) throw new Error('poison');
  }
}

/** Fails now and then, and its dead letters matter. */
@Injectable()
class Orders {
  @OnSessionEvent(SessionDeletedEvent)
  cancel({ session }: SessionDeletedEvent) {
    if (String(session.getAttribute('cart')).startsWith('genuine')) throw new Error('no connection');
  }
}

async function start(deadLetterBytes?: number, providers: Type[] = [Reminders, Orders]): Promise<void> {
  const events = { attempts: 1, deadLetters: { retention: '2d' } } as const;
  const redis = { url: store.server.url, events, cleanup: { cron: '0 0 0 29 2 *' } };
  instance = await EventInstance.start({ redis, providers, deadLetterBytes });
  groups = instance.module.get(SessionEventGroups);
  trimmer = instance.module.get(EventTrimmer);
}

async function end(cart: string): Promise<string> {
  const id = await store.create({ cart: JSON.stringify(cart) });
  await store.scripts.delete(id);
  return id;
}

const isSettled = () =>
  eventually(async () => {
    const [group] = await groups.list();
    expect(group).toMatchObject({ lag: 0, pending: 0 });
  });

const bytes = async () => Number(await store.client.memory('USAGE', store.keys.deadLetters, 'SAMPLES', 0));
const carts = async () =>
  (await groups.deadLetters({ limit: 1000 })).map(({ event }) => event?.session.getAttribute<string>('cart'));
const linesAbout = () => EventInstance.log.matching(/dead letters of .* were removed/);
/** The records of dead letters, without the counts of lost ones. */
const records = () => store.client.exists(`${store.keys.deadLetters}:index`, `${store.keys.deadLetters}:sizes`);

it('poisonous sessions fill no more than the dead letters may take, and push out none of another handler', async () => {
  await start(1_000_000);
  const genuine = await end('genuine');
  await isSettled();
  for (let i = 0; i < 100; i++) await end(`x${i}`.padEnd(90_000, 'x'));
  await isSettled();
  expect(await bytes()).toBeLessThan(1_200_000);
  const letters = await groups.deadLetters();
  expect(letters[0]).toMatchObject({ handler: 'Orders.cancel', event: { id: `deleted-${genuine}` } });
  const poison = letters.slice(1);
  expect(new Set(poison.map(({ handler }) => handler))).toEqual(new Set(['Reminders.remind']));
  expect(poison.length).toBeGreaterThan(8);
  const [group] = await groups.list();
  expect(group!.lostDeadLetters).toBe(100 - poison.length);
  await trimOnce(trimmer);
  expect(linesAbout()).toEqual([
    expect.stringContaining(`warn ${100 - poison.length} dead letters of group "default" were removed`),
  ]);
  await trimOnce(trimmer);
  expect(linesAbout()).toHaveLength(1);
});

it('many small dead letters of one handler make room for a large one of another', async () => {
  await start(100_000);
  for (let i = 0; i < 150; i++) await end(`x${i}`);
  await isSettled();
  const before = (await carts()).length;
  await end('genuine');
  await isSettled();
  await end('genuine'.padEnd(40_000, '!'));
  await isSettled();
  const left = await carts();
  expect(left).toContain('genuine');
  expect(left.length).toBeLessThan(before);
  expect(left.at(-1)).toHaveLength(40_000);
  expect(await bytes()).toBeLessThan(120_000);
});

it('a dead letter is removed after the retention, which is logged and counted', async () => {
  await start();
  await end('genuine');
  await end('x');
  await isSettled();
  await store.client.xadd(
    store.keys.deadLetters,
    '*',
    'member',
    'of an earlier version',
    'reason',
    'foreign',
    'at',
    '1',
  );
  await store.server.stepClock(DAY);
  await end('x young');
  await isSettled();
  await store.server.stepClock(DAY + MINUTE);
  await trimOnce(trimmer);
  expect(await carts()).toEqual(['x young']);
  expect(linesAbout().toSorted()).toEqual([
    expect.stringContaining('warn 1 dead letters of stray keys or members were removed'),
    expect.stringContaining('warn 2 dead letters of group "default" were removed'),
  ]);
  expect(await groups.list()).toMatchObject([{ lostDeadLetters: 2 }]);
  await store.server.stepClock(DAY);
  await trimOnce(trimmer);
  expect([await groups.deadLetters(), await records()]).toEqual([[], 0]);
});

it('a replayed or discarded dead letter takes no more room, and does not count as lost', async () => {
  await start(1_000_000);
  for (let i = 0; i < 5; i++) await end(`x${i}`.padEnd(90_000, 'x'));
  await end('genuine');
  await isSettled();
  const [first, second] = await groups.deadLetters();
  expect([await groups.discard(first!.id), await groups.discard(first!.id)]).toEqual([true, false]);
  expect(await groups.replay(second!.id)).toBe('replayed');
  await isSettled();
  // Its handler fails again.
  await eventually(async () => expect(await carts()).toHaveLength(5));
  expect(await store.client.zcard(`${store.keys.deadLetters}:index`)).toBe(5);
  expect(await groups.discardAll()).toBe(5);
  expect([await records(), await store.client.exists(store.keys.lostDeadLetters)]).toEqual([0, 0]);
  for (let i = 0; i < 5; i++) await end(`x${i}`.padEnd(90_000, 'x'));
  await isSettled();
  expect(await carts()).toHaveLength(5);
});

it('data that is too large is left out of the dead letter, which tells its size', async () => {
  let failing = true;
  const handled: unknown[] = [];
  @Injectable()
  class Failing {
    @OnSessionEvent(SessionDeletedEvent)
    fail({ session, dataLost }: SessionDeletedEvent) {
      if (failing) throw new Error('no mail');
      handled.push([session.getAttribute<string>('cart')?.length, dataLost]);
    }
  }
  // A dead letter takes half of it at most.
  await start(20_000, [Failing]);
  const ids = [await end('a'.repeat(20_000)), await end('b'.repeat(20_000)), await end('c'.repeat(5000))];
  await isSettled();
  const letters = await groups.deadLetters();
  const omitted = { omittedBytes: expect.any(Number), event: { dataLost: true }, handler: 'Failing.fail' };
  expect(letters).toMatchObject([omitted, omitted, { omittedBytes: undefined, event: { dataLost: false } }]);
  expect(letters[0]!.omittedBytes).toBeGreaterThan(20_000);
  expect(letters[0]!.omittedBytes).toBeLessThan(20_500);
  failing = false;
  // A replay has the data only while the session hash still exists.
  await store.client.del(store.keys.session(ids[1]!));
  expect(await groups.replayAll()).toBe(3);
  await eventually(() => expect(handled).toHaveLength(3));
  expect(handled).toEqual(
    expect.arrayContaining([
      [20_000, false],
      [undefined, true],
      [5000, false],
    ]),
  );
});

it('letters make room as well if their index was deleted', async () => {
  await start(50_000);
  for (let i = 0; i < 20; i++) await end(`x${i}`);
  await isSettled();
  await store.client.del(`${store.keys.deadLetters}:index`);
  for (let i = 0; i < 200; i++) await end(`x${i}`);
  await isSettled();
  expect(await bytes()).toBeLessThan(70_000);
  expect(await carts()).toContain('x199');
});
