import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Cron, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { jest } from '@jest/globals';
import { SessionModule } from '@nest-session/core';
import { DeadlineModule } from '@nest-session/deadlines';
import { LeakGuard, LogRecorder, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { RedisSessionModule, type RedisSessionModuleOptions } from '@nest-session/redis';
import { RETRY } from '../../../redis-events/src/timing/background-service.js';
import { EventTrimmer } from '../../../redis-events/src/delivery/event.trimmer.js';
import { Cleanup, CleanupJob, CleanupTurns } from '../../../redis-events/src/cleanup/cleanup.job.js';
import { RedisDeadlineModule } from '../../../deadlines/src/redis/redis-deadline.module.js';
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
    log.lines.map((line) => /^Caught up with (\d+) sessions that were due long ago/.exec(line)?.[1]).filter(Boolean);
  // A pass may have run between two of them.
  await eventually(() => expect(counts().reduce((sum, count) => sum + Number(count), 0)).toBe(3));
  await instance.stop();
  expect(counts()).not.toContain('0');
});

it.each([
  ['before', true],
  ['before', false],
  ['after', true],
  ['after', false],
] as const)(
  'the application may have cron jobs with the names of those of the library: ScheduleModule %s it, with deadlines: %s',
  async (order, hasDeadlines) => {
    const ticks: string[] = [];

    @Injectable()
    class TheirJobs {
      @Cron('* * * * * *', { name: 'session-cleanup' })
      sessions() {
        ticks.push('sessions');
      }

      @Cron('* * * * * *', { name: 'deadline-cleanup' })
      deadlines() {
        ticks.push('deadlines');
      }
    }

    const log = new LogRecorder();
    const deadlines = [DeadlineModule.forRoot(), RedisDeadlineModule.forRoot({ url: proxy.url })];
    const ours = [
      SessionModule.forRoot(),
      RedisSessionModule.forRoot({ url: proxy.url, notifications: 'off', cleanup: EACH_SECOND }),
      ...(hasDeadlines ? deadlines : []),
    ];
    const schedule = ScheduleModule.forRoot();
    const imports = order === 'before' ? [schedule, ...ours] : [...ours, schedule];
    @Module({ imports, providers: [TheirJobs] })
    class AppModule {}
    const app = await NestFactory.createApplicationContext(AppModule, { logger: log, abortOnError: false });
    try {
      const registry = app.get(SchedulerRegistry, { strict: false });
      const names = hasDeadlines ? ['session-cleanup', 'deadline-cleanup'] : ['session-cleanup'];
      const theirs = names.map((name) => registry.getCronJob(name));
      expect(log.matching(/has a cron job/).toSorted()).toEqual(
        names.toSorted().map((name): unknown => expect.stringContaining(`"${name}" of its own`)),
      );
      await eventually(() => expect(new Set(ticks)).toEqual(new Set(['sessions', 'deadlines'])));
      await eventually(async () => expect(await store.client.exists(store.keys.cleanup)).toBe(1));
      await app.get(CleanupJob, { strict: false }).stop();
      expect(names.map((name) => registry.getCronJob(name))).toEqual(theirs);
    } finally {
      await app.close();
    }
  },
);

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

describe('a pass of the cleanup', () => {
  const DAY = 24 * 60 * 60 * 1000;
  const { signal } = new AbortController();
  const startAtRest = async (redis: RedisSessionModuleOptions = {}) => {
    const instance = await start({ cleanup: { cron: '0 0 0 29 2 *' }, ...redis });
    return { instance, cleanup: instance.module.get(Cleanup, { strict: false }) };
  };
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it('waits for what it does, also when the next one is months away', async () => {
    const { instance, cleanup } = await startAtRest();
    const ids = [await store.create(), await store.create()];
    for (const id of ids) await store.runOutLongAgo(id);
    const takes = jest.spyOn(CleanupTurns.prototype, 'take');
    // A Redis that stalls is left to the next pass.
    do await cleanup.run(60 * DAY, signal);
    while ((await takes.mock.results.at(-1)!.value) === 'silent');
    // Whether anybody wants creations is known only some time after the start.
    const types = await store.eventTypesOf(ids);
    expect(types.map((its) => its.filter((type) => type !== 'created'))).toEqual(ids.map(() => ['expired']));
    await instance.stop();
  });

  it('looks at the groups at rest as well, but not each time', async () => {
    const { instance, cleanup } = await startAtRest();
    const checks = jest.spyOn(EventTrimmer.prototype, 'checkGroups');
    for (let tick = 1; tick <= 3; tick++) {
      await cleanup.run(DAY, signal);
      await store.client.del(store.keys.cleanup);
    }
    expect(checks).toHaveBeenCalledTimes(1);
    await instance.stop();
  });

  it('asks a node that does not reply about one partition at a time, until the next tick', async () => {
    const { instance, cleanup } = await startAtRest({ partitions: 4 });
    const takes = jest.spyOn(CleanupTurns.prototype, 'take').mockResolvedValue('silent');
    expect(await cleanup.run(2 * RETRY, signal)).toBe(false);
    expect(takes.mock.calls.length).toBeLessThanOrEqual(3);
    takes.mockClear().mockResolvedValue('taken').mockResolvedValueOnce('silent');
    expect(await cleanup.run(DAY, signal)).toBe(true);
    expect(takes).toHaveBeenCalledTimes(5);
    await instance.stop();
  });

  it('was whole when this or another instance had the turn of each partition, and its own turns ended in time', async () => {
    const { instance, cleanup } = await startAtRest({ partitions: 4 });
    const takes = jest.spyOn(CleanupTurns.prototype, 'take');
    for (const turn of ['taken', 'clean'] as const) {
      takes.mockResolvedValue(turn);
      expect({ turn, isWhole: await cleanup.run(DAY, signal) }).toEqual({ turn, isWhole: true });
    }
    for (const turn of ['silent', 'busy'] as const) {
      takes.mockResolvedValue(turn);
      expect({ turn, isWhole: await cleanup.run(RETRY, signal) }).toEqual({ turn, isWhole: false });
    }
    takes.mockResolvedValue('taken');
    expect(await cleanup.run(0, signal)).toBe(false);
    expect(await cleanup.run(DAY, AbortSignal.abort())).toBe(false);
    await instance.stop();
  });
});
