import type { RedisSessionModuleOptions } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisCluster, RedisServer } from '@nest-session/testing';
import { DeviceRoutes } from '../../../session-core/test/device/device.app.js';
import { DeviceBrowser, offerIn } from '../../../session-core/test/device/device.browser.js';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

const LONG = 60_000;

const running: { stop(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const each of running.splice(0).reverse()) await each.stop();
}, LONG);

async function start(redis: RedisSessionModuleOptions): Promise<App> {
  const app = await App.start({
    redis,
    session: { deviceBound: { mode: 'enforce' } },
    controllers: [DeviceRoutes],
    handlers: false,
    configure: (nest: { set(name: string, value: string): void }) => nest.set('trust proxy', 'loopback'),
  });
  running.push(app);
  return app;
}

it(
  'sessions are bound in a Cluster, and stay so when the node that has them fails over',
  async () => {
    const cluster = await RedisCluster.start({ replicas: 1 });
    running.push(cluster);
    const redis = { cluster: { nodes: cluster.addresses }, partitions: 8, replicas: 1 };
    const apps = [await start(redis), await start(redis)] as const;
    const browsers = await Promise.all(
      Array.from({ length: 12 }, async (_, i) => {
        const browser = new DeviceBrowser(apps[i % 2]!.url);
        await browser.post('/sign-in');
        await browser.get('/money');
        expect(browser.own).toEqual(['register 200']);
        return browser.movedTo(apps[(i + 1) % 2]!.url);
      }),
    );
    for (const browser of browsers) {
      await browser.post('/rotate');
      browser.jar.delete('SESSION-device');
      expect((await browser.get('/money')).body).toBe('money');
    }
    for (const slot of [0, 8000, 16_000]) await cluster.failover(await cluster.primaryOf(slot));
    for (const browser of browsers) {
      browser.jar.delete('SESSION-device');
      await eventually(async () => expect((await browser.get('/money')).body).toBe('money'), { timeout: LONG });
      expect(browser.own.filter((each) => !/ (200|503)$/.test(each))).toEqual([]);
    }
  },
  3 * LONG,
);

it(
  'nobody loses a binding while Redis is frozen or away, before the registration and after it',
  async () => {
    const server = await RedisServer.start({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
    running.push(server);
    const app = await start({ url: server.url, commandTimeout: '500ms' });
    const browser = new DeviceBrowser(app.url);
    const offer = offerIn(await browser.send('POST', '/sign-in'))!;
    server.freeze();
    expect((await browser.register(offer.path, offer.challenge)).status).toBe(503);
    server.thaw();
    await eventually(async () => {
      const again = await browser.register(offer.path, offer.challenge);
      expect(again.status).toBe(200);
    });
    expect((await browser.get('/money')).body).toBe('money');
    for (const fault of ['freeze', 'kill'] as const) {
      browser.jar.delete('SESSION-device');
      await server[fault]();
      await browser.refresh();
      expect([browser.own.at(-1), browser.binding !== undefined]).toEqual(['refresh 503', true]);
      await (fault === 'freeze' ? server.thaw() : server.restart());
      await eventually(async () => expect((await browser.get('/money')).body).toBe('money'), { timeout: LONG });
    }
  },
  2 * LONG,
);
