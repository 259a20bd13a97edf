import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { KeyspaceNotificationListener } from '@nest-session/redis-events';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { App } from '../../../session-redis/test/support/app.fixture.js';
import { withAllRights } from '../../../session-redis/test/support/with-all-rights.js';

LeakGuard.install();

let server: RedisServer;
let client: Redis;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

const connected = async () => [...String(await client.client('LIST')).matchAll(/ name=(\S+)/g)].map(([, name]) => name);

it('an injected listener starts and stops with its application', async () => {
  const released: string[] = [];
  let finish!: () => void;
  const finished = new Promise<void>((resolve) => (finish = resolve));

  @Injectable()
  class Reservations implements OnModuleInit {
    constructor(@Inject(KeyspaceNotificationListener) readonly notifications: KeyspaceNotificationListener) {}

    onModuleInit() {
      this.notifications.listen({
        keys: 'reservation:*',
        events: 'expired',
        handler: async ({ key }) => {
          released.push(key);
          await finished;
        },
      });
    }
  }

  const app = await App.start({
    redis: { url: withAllRights(server.url), notifications: 'off' },
    providers: [Reservations],
  });
  const { notifications } = app.nest.get(Reservations);
  await eventually(() => notifications.health.state === 'listening');
  expect(await connected()).toContain('nest:session:notifications');
  await client.set('reservation:7', '', 'PX', 10);
  await eventually(async () => (await client.exists('reservation:7')) === 0);
  await eventually(() => expect(released).toEqual(['reservation:7']));

  const order: string[] = [];
  const stopped = app.stop().then(() => order.push('application'));
  await eventually(async () => expect(await connected()).not.toContain('nest:session:notifications'));
  order.push('handler');
  finish();
  await stopped;
  expect(order).toEqual(['handler', 'application']);
  expect(notifications.health.state).toBe('stopped');
});

it('a listener without subscriptions opens no connection', async () => {
  const app = await App.start({ redis: { url: server.url, namespace: 'quiet' } });
  await eventually(async () => expect(await connected()).toContain('quiet:subscriber'));
  expect(await connected()).not.toContain('quiet:notifications');
  await app.stop();
});
