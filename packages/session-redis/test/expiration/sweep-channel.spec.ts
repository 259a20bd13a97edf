import { tracingChannel } from 'node:diagnostics_channel';
import type { SessionChannels, SessionSweepContext } from '@nest-session/core/telemetry';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import type { RedisSessionModuleOptions } from '../../src/index.js';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

const NEVER = { cron: '0 0 0 29 2 *' };
const channel = tracingChannel<string, SessionChannels['nest-session:sweep']>('nest-session:sweep');
let redis: RedisServer;
beforeAll(async () => {
  redis = await RedisServer.start();
});
afterAll(() => redis.stop());

/** What the channel tells of the sweep that has found the only session, which is over after a second. */
async function toldOfTheEnd(
  namespace: string,
  options: RedisSessionModuleOptions,
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
      const found = told.find(({ claimed = 0 }) => claimed > 0);
      if (!found) throw new Error('No sweep has found the session yet');
      return found;
    });
  } finally {
    await app.stop();
    channel.unsubscribe(subscribers);
  }
}

it('tells of the sessions that a key event has told of', async () => {
  const told = await toldOfTheEnd('keys', {});
  expect(told).toEqual({ noticedBy: 'key_event', namespace: 'keys', claimed: 1, result: undefined });
});

it('tells of what the cleanup job has found', async () => {
  const told = await toldOfTheEnd('job', { notifications: 'off' }, (app) => app.sweeper.runOnce({ ahead: 60_000 }));
  expect(told).toEqual({ noticedBy: 'sweep', namespace: 'job', claimed: 1, late: 0, result: undefined });
});

it('tells of what the poller of a sorted set has found', async () => {
  const told = await toldOfTheEnd('poll', { expirations: 'sorted-set' });
  expect(told).toEqual({ noticedBy: 'poll', namespace: 'poll', claimed: 1, late: 0, result: undefined });
});
