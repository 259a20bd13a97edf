import { Injectable } from '@nestjs/common';
import { OnSessionEvent, OnSessionEventGap, SessionEvent, type SessionEventGap } from '@nest-session/core';
import { type RedisSessionModuleOptions, SessionEventGroups } from '@nest-session/redis';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { EventTrimmer } from '../../../redis-events/src/delivery/event.trimmer.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { MINUTE, type SteppableStore, Store } from '../support/store.fixture.js';
import { trimOnce } from '../support/trim-once.js';

LeakGuard.install();

/** From one run of the job to the next: less than the grace period. */
const TICK = 4 * MINUTE;
const PER_TICK = 10;

let store: SteppableStore;
let proxy: TcpProxy;
let instances: EventInstance[] = [];
beforeAll(async () => {
  store = await Store.openSteppable();
  proxy = await TcpProxy.start({ port: store.server.port });
});
afterEach(async () => {
  for (const instance of instances) await instance.stop();
  instances = [];
  EventInstance.log.lines.splice(0);
  await store.client.flushall();
});
afterAll(async () => {
  await proxy.stop();
  await store.close();
});

async function start(provider: new () => unknown, options: RedisSessionModuleOptions = {}): Promise<EventInstance> {
  const cleanup = { cron: '0 0 0 29 2 *' };
  // Without canaries, which could be among the counted keys.
  const redis = { url: store.server.url, cleanup, notifications: 'off' as const, ...options };
  const instance = await EventInstance.start({ redis, providers: [provider as never] });
  instances.push(instance);
  return instance;
}

/** An instance of one group, and a second group without instances. */
async function readAndUnread(events: RedisSessionModuleOptions['events']) {
  let handled = 0;
  @Injectable()
  class Handlers {
    @OnSessionEvent(SessionEvent)
    handle() {
      handled++;
    }
  }
  const { module } = await start(Handlers, { events });
  const groups = module.get(SessionEventGroups);
  await groups.create('reports');
  let recorded = 0;
  let removed = 0;
  /** Lets `ticks` pass, in which the first group handles its events; each tick ends with a run of the job. */
  const pass = async (ticks: number) => {
    for (let tick = 0; tick < ticks; tick++) {
      for (let i = 0; i < PER_TICK; i += 2) await store.scripts.delete(await store.create());
      recorded += PER_TICK;
      await eventually(async () => handled === recorded && (await store.pending('default')) === 0);
      await store.server.stepClock(TICK);
      removed += (await trimOnce(module.get(EventTrimmer))).removed;
      expect(await length()).toBe(recorded - removed);
    }
  };
  /** An instance of the second group starts, handles `count` events, and stops. */
  const visit = async (count: number) => {
    let read = 0;
    @Injectable()
    class Reports {
      @OnSessionEvent(SessionEvent)
      handle() {
        read++;
      }
    }
    const visitor = await start(Reports, { events: { group: 'reports' } });
    await eventually(async () => read === count && (await store.pending('reports')) === 0);
    await visitor.stop();
    instances = instances.filter((each) => each !== visitor);
  };
  const reports = async () => (await groups.list()).find(({ name }) => name === 'reports')!;
  return { pass, visit, reports, groups, recorded: () => recorded };
}

const length = () => store.client.xlen(store.keys.events);
/** The log lines about groups. */
const logged = () => EventInstance.log.matching(/ group "/);

it('an unread group is logged, holds its events for the retention, and has its dropped events counted', async () => {
  const { pass, visit, reports, groups, recorded } = await readAndUnread({ retention: '1h' });
  await pass(14);
  expect(await reports()).toMatchObject({ lag: 14 * PER_TICK, dropped: 0, consumers: [] });
  expect(logged()).toEqual([expect.stringMatching(/^warn Nobody reads the events of group "reports"/)]);

  for (const ticks of [3, 15]) {
    await pass(ticks);
    expect(await length()).toBe(PER_TICK);
    expect(await reports()).toMatchObject({ lag: PER_TICK, dropped: recorded() - PER_TICK });
    expect(await store.client.keys('nest:session:sessions:*')).toHaveLength(PER_TICK / 2);
  }
  expect(logged()).toEqual([
    expect.stringMatching(/^warn Nobody reads the events of group "reports"/),
    expect.stringMatching(/^warn \d+ events were removed that group "reports" had not handled/),
  ]);
  expect((await groups.list()).find(({ name }) => name === 'default')).toMatchObject({ lag: 0, dropped: 0 });

  // Once the group has read, its events are kept again.
  await visit(PER_TICK);
  await pass(7);
  expect(await reports()).toMatchObject({ lag: 7 * PER_TICK });
});

it('an unread group keeps no more events than `maxLength`', async () => {
  const { pass, visit, reports, recorded } = await readAndUnread({ maxLength: 40 });
  await pass(1);
  await visit(PER_TICK);
  await pass(7);
  expect(await length()).toBe(40);
  expect(await reports()).toMatchObject({ lag: 40, dropped: recorded() - PER_TICK - 40 });
});

it('an instance with broadcast handlers is notified when events were removed before it received them', async () => {
  const heard: string[] = [];
  const gaps: SessionEventGap[] = [];
  @Injectable()
  class Cache {
    @OnSessionEvent(SessionEvent, { broadcast: true })
    forget({ id }: SessionEvent) {
      heard.push(id);
    }

    @OnSessionEventGap()
    clear(gap: SessionEventGap) {
      gaps.push(gap);
    }
  }
  const { pass } = await readAndUnread({ maxLength: 40 });
  await start(Cache, { url: proxy.url });
  await pass(1);
  await eventually(() => heard.length === PER_TICK);
  const last = heard.at(-1);
  proxy.refuse();
  proxy.cut();
  await pass(6);
  // Without the ends of the first tick, which it has received: creations make room for ends.
  const kept = (await length()) - PER_TICK / 2;
  await proxy.accept();
  await eventually(() => heard.length === PER_TICK + kept);
  expect(gaps).toHaveLength(1);
  expect(heard.indexOf(last!)).toBe(PER_TICK - 1);
  expect(EventInstance.log.matching(/^warn Broadcast events recorded after \S+ were missed/)).toHaveLength(1);
});
