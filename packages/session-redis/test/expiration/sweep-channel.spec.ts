import { tracingChannel } from 'node:diagnostics_channel';
import type { SessionChannels, SessionSweepContext } from '@nest-session/core/telemetry';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import type { RedisSessionModuleOptions } from '../../src/index.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { App } from '../support/app.fixture.js';
import { HandTimer } from '../support/hand.timer.js';

LeakGuard.install();

const NEVER = { cron: '0 0 0 29 2 *' };
const channel = tracingChannel<string, SessionChannels['nest-session:sweep']>('nest-session:sweep');
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

/** What the channel tells of the first call that is looked for, after a session has begun that is over in a second. */
async function toldBy(
  namespace: string,
  options: RedisSessionModuleOptions,
  isLookedFor: (context: SessionSweepContext) => boolean,
  sweep = async (_app: App) => undefined as unknown,
): Promise<SessionSweepContext> {
  const told: SessionSweepContext[] = [];
  const nothing = () => undefined;
  const asyncEnd = (context: SessionSweepContext) => void told.push(context);
  const subscribers = { start: nothing, end: nothing, asyncStart: nothing, asyncEnd, error: nothing };
  channel.subscribe(subscribers);
  const app = await App.start({
    session: { timeout: '1s' },
    redis: { url: redis.url, namespace, cleanup: NEVER, ...options },
  });
  try {
    await app.agent().post('/set/cart', { value: ['secret'] });
    return await eventually(async () => {
      await sweep(app);
      const found = told.find(isLookedFor);
      if (!found) throw new Error('The channel has not told of it yet');
      return found;
    });
  } finally {
    await app.stop();
    channel.unsubscribe(subscribers);
  }
}

/** What it tells of the call that has found the session. */
const toldOfTheEnd = (namespace: string, options: RedisSessionModuleOptions, sweep?: (app: App) => Promise<unknown>) =>
  toldBy(namespace, options, ({ claimed = 0 }) => claimed > 0, sweep);

const DELAYS = [expect.any(Number)];

it('tells of the sessions that a key event has told of', async () => {
  const told = await toldOfTheEnd('keys', {});
  expect(told).toEqual({ noticedBy: 'key_event', namespace: 'keys', claimed: 1, delays: DELAYS, result: undefined });
});

it('tells of what a sweep has found, and how late', async () => {
  const told = await toldOfTheEnd('job', { notifications: 'off' }, (app) => app.sweeper.runOnce({ ahead: 60_000 }));
  const found = { claimed: 1, late: 0, delays: DELAYS };
  expect(told).toEqual({ noticedBy: 'sweep', namespace: 'job', ...found, result: undefined });
  expect(told.delays![0]).toBeGreaterThanOrEqual(0);
});

it('tells of the sweeps of the cleanup job', async () => {
  const cleanup = { cron: '* * * * * *' };
  const { bucketList } = new SessionPartitions('cron', 1).all[0]!;
  // A minute is due.
  const makeDue = async () => client.zadd(bucketList, 60_000, '60000');
  const isSweep = ({ noticedBy }: SessionSweepContext) => noticedBy === 'sweep';
  const told = await toldBy('cron', { notifications: 'off', cleanup }, isSweep, makeDue);
  expect(told).toEqual({ noticedBy: 'sweep', namespace: 'cron', claimed: 0, late: 0, delays: [], result: undefined });
});

it('tells of what the poller of a sorted set has found', async () => {
  const told = await toldOfTheEnd('poll', { expirations: 'sorted-set', notifications: 'off' });
  const found = { claimed: 1, late: 0, delays: DELAYS };
  expect(told).toEqual({ noticedBy: 'poll', namespace: 'poll', ...found, result: undefined });
});

it('tells of the sessions that a timer has told of', async () => {
  const timer = new HandTimer();
  const ask = () => Promise.all(timer.calls.map(([, id]) => timer.ask(id)));
  const told = await toldOfTheEnd('timer', { notifications: 'off', expirations: timer }, ask);
  expect(told).toEqual({ noticedBy: 'timer', namespace: 'timer', claimed: 1, delays: DELAYS, result: undefined });
});
