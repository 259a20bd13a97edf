import { LeakGuard, Sentinel, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

it.each([
  // No sweep but that of the listener: a later report comes from a notification.
  { name: 'is notified again', expirations: 'buckets', notifications: 'auto', flags: 'xK' },
  { name: 'its poller goes on', expirations: 'sorted-set', notifications: 'off', flags: '' },
] as const)(
  'after a failover, an application uses the promoted replica, loses no end of a session, and $name',
  async ({ expirations, notifications, flags }) => {
    const master = await RedisServer.start();
    const replica = await RedisServer.start({ args: ['--replicaof', `127.0.0.1 ${master.port}`] });
    const sentinel = await Sentinel.start('sessions', master);
    const client = new Redis({ sentinels: [{ port: sentinel.port }], name: 'sessions', lazyConnect: true });
    const redis = {
      client,
      cleanup: { cron: '0 0 0 1 1 *' },
      commandTimeout: '10s',
      expirations,
      notifications,
    } as const;
    const app = await App.start({ session: { timeout: '2s' }, redis });
    try {
      const meanwhile = await Promise.all(Array.from({ length: 20 }, () => create(app)));
      const direct = new Redis(master.url, { retryStrategy: () => null }).on('error', () => undefined);
      await eventually(async () => expect(await direct.wait(1, 1000)).toBe(1));
      await master.kill();
      await sentinel.look();

      for (const id of meanwhile) {
        const event = await app.events.next('expired', id, { timeout: 60_000 });
        expect(event.session.getAttribute('cart')).toBe('full');
      }
      const afterwards = await create(app);
      await app.events.next('expired', afterwards, { timeout: 60_000 });
      const promoted = new Redis(replica.url);
      expect(await promoted.config('GET', 'notify-keyspace-events')).toEqual(['notify-keyspace-events', flags]);
      promoted.disconnect();
    } finally {
      await app.stop();
      await sentinel.stop();
      await replica.stop();
      await master.stop();
    }
  },
  180_000,
);

it('an application passes over a Sentinel that does not reply', async () => {
  const master = await RedisServer.start();
  const replica = await RedisServer.start({ args: ['--replicaof', `127.0.0.1 ${master.port}`] });
  const sentinel = await Sentinel.start('sessions', master);
  const proxy = await TcpProxy.start({ port: sentinel.port });
  proxy.hold('request');
  const sentinels = [proxy, sentinel].map(({ port }) => ({ host: '127.0.0.1', port }));
  try {
    const app = await App.start({ redis: { sentinels, name: 'sessions', requireAtStart: true } });
    await create(app);
    await app.stop();
  } finally {
    await proxy.stop();
    await sentinel.stop();
    await replica.stop();
    await master.stop();
  }
}, 180_000);

/** Stores a session, with retries during the outage; its id. */
async function create(app: App): Promise<string> {
  const agent = app.agent();
  return eventually(
    async () => {
      const response = await agent.post('/set/cart', { value: 'full' });
      expect(response.status).toBe(201);
      return (response.json() as { id: string }).id;
    },
    { timeout: 60_000 },
  );
}
