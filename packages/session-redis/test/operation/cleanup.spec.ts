import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import type { RedisSessionModuleOptions } from '@nest-session/redis';
import { commandStats } from '../support/command.stats.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { LineRecorder } from '../support/line.recorder.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

const EACH_SECOND = { cron: '* * * * * *' };

let store: Store;
let proxy: TcpProxy;
beforeAll(async () => {
  store = await Store.open();
  proxy = await TcpProxy.start({ port: store.server.port });
});
beforeEach(() => store.client.flushall());
afterAll(async () => {
  await proxy.stop();
  await store.close();
});

const start = (redis: RedisSessionModuleOptions = {}) =>
  EventInstance.start({ redis: { url: proxy.url, notifications: 'off', cleanup: EACH_SECOND, ...redis } });

const length = () => store.client.xlen(store.keys.events);

it('the cleanup logs the sessions that earlier passes should have found, and nothing when there are none', async () => {
  const instance = await start();
  const log = new LineRecorder().install();
  const passes = async () => (await commandStats(store.client)).get('zrangebyscore')?.calls ?? 0;
  await eventually(async () => expect(await passes()).toBeGreaterThanOrEqual(2));
  for (let i = 0; i < 3; i++) await store.runOutLongAgo(await store.create());
  const counts = () =>
    log.lines.map((line) => /^Caught up with (\d+) sessions that had ended unnoticed/.exec(line)?.[1]).filter(Boolean);
  // A pass may have run between two of them.
  await eventually(() => expect(counts().reduce((sum, count) => sum + Number(count), 0)).toBe(3));
  await instance.stop();
  expect(counts()).not.toContain('0');
});

it('the cleanup trims the events', async () => {
  const instance = await start({ events: { maxLength: 1 } });
  for (let i = 0; i < 3; i++) await store.create();
  await eventually(async () => expect(await length()).toBe(1));
  await instance.stop();
});

it('shutdown ends a cleanup before the next batch of events', async () => {
  for (let i = 0; i < 200; i++) await store.create();
  proxy.hold('request', store.keys.dropped);
  const instance = await start({ events: { maxLength: 1 } });
  await proxy.untilHeld('request');
  const stopped = instance.stop();
  proxy.release('request');
  await stopped;
  expect(await length()).toBe(150);
});
