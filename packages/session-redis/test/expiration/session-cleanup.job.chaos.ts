import { Injectable } from '@nestjs/common';
import { Cron, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { jest } from '@jest/globals';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Cleanup } from '../../../redis-events/src/cleanup/cleanup.job.js';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

const minute = () => Math.floor(Date.now() / 60_000);

let server: RedisServer;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());

it("the cleanup job and the application's own cron job each run once a minute", async () => {
  /** The minutes in which each job ran. A slow machine may skip a minute of either job. */
  const ticks = { ours: [] as number[], theirs: [] as number[], afterwards: [] as number[] };

  @Injectable()
  class TheirJobs {
    @Cron('0 * * * * *')
    eachMinute() {
      ticks.theirs.push(minute());
    }

    // By then every job of the full minute has started.
    @Cron('2 * * * * *')
    alsoEachMinute() {
      ticks.afterwards.push(minute());
    }
  }

  const app = await App.start({
    session: { timeout: '1s' },
    redis: { url: server.url, notifications: 'off' },
    imports: [ScheduleModule.forRoot()],
    providers: [TheirJobs],
  });
  try {
    const cleanup = app.nest.get(Cleanup, { strict: false });
    const { run } = cleanup;
    jest.spyOn(cleanup, 'run').mockImplementation((...args) => {
      ticks.ours.push(minute());
      return run.apply(cleanup, args);
    });
    expect(app.nest.get(SchedulerRegistry).getCronJob('session-cleanup').isActive).toBe(true);
    const { id } = (await app.agent().post('/set/cart', { value: ['apple'] })).json() as { id: string };
    const event = await app.events.next('expired', id, { timeout: 170_000 });
    expect(event.session.getAttribute('cart')).toEqual(['apple']);
    const isComplete = (each: number) => ticks.ours.includes(each) && ticks.theirs.includes(each);
    await eventually(() => ticks.afterwards.some(isComplete), { timeout: 180_000 });
    for (const minutes of [ticks.ours, ticks.theirs]) expect(minutes).toEqual([...new Set(minutes)]);
    expect(app.events.count('expired', id)).toBe(1);
  } finally {
    await app.stop();
  }
}, 360_000);

it('the cleanup job runs in an application that does not import @nestjs/schedule', async () => {
  const redis = { url: server.url, notifications: 'off' as const, cleanup: { cron: '* * * * * *' } };
  const app = await App.start({ session: { timeout: '1s' }, redis });
  try {
    const runs = jest.spyOn(app.nest.get(Cleanup, { strict: false }), 'run');
    // It has cleaned up everything, in one of them at least: they are only a second apart.
    await eventually(async () =>
      expect(await Promise.all(runs.mock.results.map(({ value }) => value as Promise<boolean>))).toContain(true),
    );
  } finally {
    await app.stop();
  }
});
