import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionEvent } from '@nest-session/core';
import { SessionEventGroups, SessionExpirationSweeper } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { EventTrimmer } from '../../../redis-events/src/delivery/event.trimmer.js';
import { print } from '../support/figures.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { GRACE, MINUTE, type SteppableStore, Store } from '../support/store.fixture.js';
import { trimOnce } from '../support/trim-once.js';

LeakGuard.install();

const MINUTES_AWAY = 30;
const PER_MINUTE = 20;
const DAY = 24 * 60 * 60;

const CART = 'x'.repeat(500);

let store: SteppableStore;
const instances: EventInstance[] = [];
beforeAll(async () => {
  store = await Store.openSteppable();
});
afterAll(async () => {
  for (const instance of instances) await instance.stop();
  await store.close();
});

/** An instance of a group, and the events that it has handled, in order. */
async function join(group: string) {
  const handled: { readonly id: string; readonly hasData: boolean }[] = [];
  @Injectable()
  class Handlers {
    @OnSessionEvent(SessionEvent)
    handle({ id, session, dataLost }: SessionEvent) {
      handled.push({ id, hasData: !dataLost && session.getAttribute('cart') === CART });
    }
  }
  // The test runs the job.
  const redis = { url: store.server.url, events: { group }, cleanup: { cron: '0 0 0 29 2 *' } };
  const instance = await EventInstance.start({ redis, providers: [Handlers] });
  instances.push(instance);
  return { handled, instance, groups: instance.module.get(SessionEventGroups) };
}

async function cleanUp({ module }: EventInstance): Promise<void> {
  await module.get(SessionExpirationSweeper).runOnce({ ahead: MINUTE });
  await trimOnce(module.get(EventTrimmer));
}

/** A minute in which sessions are created: one stays alive, the others are deleted or expire at its end. */
async function liveAMinute(): Promise<string> {
  const ids: string[] = [];
  for (let i = 0; i < PER_MINUTE; i++) {
    const id = await store.create({ cart: JSON.stringify(CART) }, { interval: i === 0 ? DAY : 60 });
    if (i > 0 && i % 2 === 0) await store.scripts.delete(id);
    ids.push(id);
  }
  await store.server.stepClock(MINUTE);
  return ids[0]!;
}

/** The events that are kept, by name, in order. */
async function recorded(): Promise<string[]> {
  const entries = await store.client.xrange(store.keys.events, '-', '+');
  return entries.map(([, [, type, , session]]) => `${type}-${session}`);
}

async function memory() {
  const keys = await store.client.keys('*');
  const sizes = await Promise.all(keys.map((key) => store.client.memory('USAGE', key, 'SAMPLES', 0)));
  const used = /used_memory:(\d+)/.exec(await store.client.info('memory'))![1]!;
  return { keys: keys.length, bytes: sizes.reduce<number>((sum, size) => sum + Number(size), 0), used: Number(used) };
}

it('a group that was absent for half an hour handles all missed events in order, without delaying others', async () => {
  const away = await join('reports');
  const present = await join('web');
  const hasGroups = async () => (await present.groups.list()).length === 2;
  const isAllDone = async () => (await present.groups.list()).every(({ lag, pending }) => lag === 0 && pending === 0);
  await eventually(hasGroups);
  await away.instance.stop();

  const alive: string[] = [];
  for (let minute = 0; minute < MINUTES_AWAY; minute++) {
    alive.push(await liveAMinute());
    await cleanUp(present.instance);
    const { length } = await recorded();
    await eventually(() => present.handled.length >= length);
  }
  const missed = await recorded();
  expect(missed).toHaveLength(MINUTES_AWAY * (2 * PER_MINUTE - 1));
  // Each once, in its minute and in order.
  expect(present.handled.map(({ id }) => id)).toEqual(missed);
  await eventually(async () =>
    expect(await present.groups.list()).toMatchObject([
      { name: 'reports', lag: missed.length, pending: 0, dropped: 0 },
      { name: 'web', lag: 0, pending: 0, dropped: 0 },
    ]),
  );
  const whileAway = await memory();

  const back = await join('reports');
  await eventually(() => back.handled.length >= missed.length);
  expect(back.handled).toEqual(missed.map((id) => ({ id, hasData: true })));
  await eventually(isAllDone);
  expect(present.handled).toHaveLength(missed.length);

  await cleanUp(present.instance);
  const caughtUp = await memory();
  await store.server.stepClock(GRACE + MINUTE);
  await cleanUp(present.instance);
  const after = await memory();
  const { keys, partitions } = store;
  const ofSessions = alive.flatMap((id) => [keys.session(id), keys.shadow(id)]);
  const buckets = (await store.client.zrangebyscore(keys.bucketList, '-inf', '+inf')).map((minute) =>
    keys.bucket(minute),
  );
  const others = [
    keys.events,
    keys.trimmed,
    keys.handlers,
    keys.wanted,
    partitions.meta,
    partitions.instances,
    keys.bucketList,
  ];
  expect((await store.client.keys('*')).sort()).toEqual([...ofSessions, ...buckets, ...others].sort());
  expect(await recorded()).toEqual([]);
  const line = ({ keys, bytes, used }: typeof after) => `${keys} keys, ${bytes} bytes (used_memory ${used})`;
  print(`${MINUTES_AWAY} minutes, ${missed.length} events, ${alive.length} sessions alive`);
  print(`while one group was away: ${line(whileAway)}`);
  print(`when it had caught up:    ${line(caughtUp)}`);
  print(`after the grace:          ${line(after)}`);
  expect(after.bytes).toBeLessThan(whileAway.bytes / 5);
});
