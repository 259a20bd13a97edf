import { Injectable } from '@nestjs/common';
import { OnSessionEvent, OnSessionEventGap, SessionEvent, type SessionEventGap } from '@nest-session/core';
import { type RedisSessionModuleOptions, SessionEventGroups } from '@nest-session/redis';
import { eventually, LeakGuard, TcpProxy } from '@nest-session/testing';
import type { SessionEventTrimmer } from '../../src/delivery/session-event.trimmer.js';
import { SESSION_EVENT_TRIMMER } from '../../src/redis-session.tokens.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { MINUTE, Store } from '../support/store.fixture.js';

LeakGuard.install();

const PER_MINUTE = 10;

let store: Store;
let proxy: TcpProxy;
let instances: EventInstance[] = [];
beforeAll(async () => {
  store = await Store.open({ steppableClock: true });
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
  const redis = { url: store.server.url, cleanup, ...options };
  const instance = await EventInstance.start({ redis, providers: [provider as never] });
  instances.push(instance);
  return instance;
}

/** An instance of the group that does read, and a group that nobody reads. */
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
  /** As many minutes, with their events; the job comes every minute. */
  const pass = async (minutes: number) => {
    for (let minute = 0; minute < minutes; minute++) {
      for (let i = 0; i < PER_MINUTE; i += 2) await store.scripts.delete(await store.create());
      recorded += PER_MINUTE;
      await eventually(() => handled === recorded);
      await eventually(async () => (await store.pending('default')) === 0);
      await store.server.stepClock(MINUTE);
      removed += (await module.get<SessionEventTrimmer>(SESSION_EVENT_TRIMMER).runOnce()).removed;
      expect(await length()).toBe(recorded - removed);
    }
  };
  const reports = async () => (await groups.list()).find(({ name }) => name === 'reports')!;
  return { pass, reports, groups, recorded: () => recorded };
}

const length = () => store.client.xlen(store.keys.events);

it('a group that nobody reads is told of, waited for up to the retention, and then no more; what it misses is counted', async () => {
  const { pass, reports, groups, recorded } = await readAndUnread({ retention: '1h' });
  await pass(59);
  expect(await reports()).toMatchObject({ lag: 59 * PER_MINUTE, dropped: 0, consumers: [] });
  expect(EventInstance.log.lines).toEqual([expect.stringMatching(/^warn Nobody reads the events of group "reports"/)]);

  await pass(5);
  const kept = await length();
  expect(kept).toBeLessThanOrEqual(6 * PER_MINUTE);
  expect(await reports()).toMatchObject({ lag: kept, dropped: recorded() - kept });
  await pass(60);
  expect(await length()).toBeLessThanOrEqual(6 * PER_MINUTE);
  expect(await reports()).toMatchObject({ lag: await length(), dropped: recorded() - (await length()) });
  expect(await store.client.keys('nest:session:sessions:*')).toHaveLength((await length()) / 2);
  expect(EventInstance.log.lines).toEqual([
    expect.stringMatching(/^warn Nobody reads the events of group "reports"/),
    expect.stringMatching(/^warn \d+ events were removed that group "reports" had not handled/),
  ]);
  expect((await groups.list()).find(({ name }) => name === 'default')).toMatchObject({ lag: 0, dropped: 0 });

  // It is read after all: from then on it is waited for.
  let read = 0;
  @Injectable()
  class Reports {
    @OnSessionEvent(SessionEvent)
    handle() {
      read++;
    }
  }
  const left = await length();
  const late = await start(Reports, { events: { group: 'reports' } });
  await eventually(() => read === left);
  await late.stop();
  instances.pop();
  await pass(30);
  expect(await reports()).toMatchObject({ lag: 30 * PER_MINUTE });
});

it('a group that nobody reads keeps no more events than `maxLength`', async () => {
  const { pass, reports, recorded } = await readAndUnread({ maxLength: 40 });
  await pass(20);
  expect(await length()).toBe(40);
  expect(await reports()).toMatchObject({ lag: 40, dropped: recorded() - 40 });
});

it('an instance that is to hear of everything is told when events were removed that it has not heard of', async () => {
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
  await eventually(() => heard.length === PER_MINUTE);
  const last = heard.at(-1);
  proxy.refuse();
  proxy.cut();
  await pass(20);
  await proxy.accept();
  await eventually(() => heard.length === PER_MINUTE + 40);
  expect(gaps).toHaveLength(1);
  expect(heard.indexOf(last!)).toBe(PER_MINUTE - 1);
  expect(EventInstance.log.matching(/^warn Broadcast events recorded after \S+ were missed/)).toHaveLength(1);
});
