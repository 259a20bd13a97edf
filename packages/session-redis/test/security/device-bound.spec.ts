import { OnSecurityEvent, type SecurityEvent, type SessionModuleOptions } from '@nest-session/core';
import type { RedisSessionModuleOptions } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { DeviceRoutes } from '../../../session-core/test/device/device.app.js';
import { DeviceBrowser } from '../../../session-core/test/device/device.browser.js';
import { App } from '../support/app.fixture.js';
import { commandStats } from '../support/command.stats.js';
import { keyOf } from '../support/encryption.fixture.js';
import { dump } from '../support/store.dump.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

let store: Store;
const running: App[] = [];
beforeAll(async () => {
  store = await Store.open();
});
afterEach(async () => {
  for (const each of running.splice(0)) await each.stop();
  await store.client.flushall();
});
afterAll(() => store.close());

async function start(
  redis: RedisSessionModuleOptions,
  providers: (new () => object)[] = [],
  deviceBound: SessionModuleOptions['deviceBound'] = { mode: 'enforce' },
): Promise<App> {
  const app = await App.start({
    redis: { url: store.server.url, ...redis },
    session: { deviceBound: deviceBound! },
    controllers: [DeviceRoutes],
    providers,
    handlers: false,
    configure: (nest: { set(name: string, value: string): void }) => nest.set('trust proxy', 'loopback'),
  });
  running.push(app);
  return app;
}

const VARIANTS: [string, RedisSessionModuleOptions][] = [
  ['as they are', {}],
  ['in four partitions', { partitions: 4 }],
  ['encrypted', { encryption: { keys: [keyOf('2026-10')] } }],
  ['with a sorted set of ends', { expirations: 'sorted-set' } as RedisSessionModuleOptions],
];

describe.each(VARIANTS)('bound sessions in Redis, %s', (_, redis) => {
  it('are bound by one instance, renewed by another, and leave nothing behind', async () => {
    const [one, other] = [await start(redis), await start(redis)];
    const clean = await dump(store.client);
    const browser = new DeviceBrowser(one.url);
    await browser.post('/sign-in');
    expect(browser.own).toEqual(['register 200']);
    const moved = browser.movedTo(other.url);
    expect((await moved.get('/money')).body).toBe('money');
    await moved.post('/rotate');
    const back = moved.movedTo(one.url);
    back.jar.delete('SESSION-device');
    expect((await back.get('/money')).body).toBe('money');
    expect(back.own).toEqual(['refresh 200']);
    const content = (await dump(store.client)).join('\n');
    if (redis.encryption) expect(content).not.toContain('secret');
    await back.post('/sign-out');
    expect(await store.client.keys('*device*')).toEqual([]);
    expect((await dump(store.client)).length).toBeLessThanOrEqual(clean.length + 3);
    // What the browser still has is over.
    await back.refresh();
    expect([back.own.at(-1), back.binding]).toEqual(['refresh 200', undefined]);
  });

  it('get one key, however many register at once', async () => {
    const refused: string[] = [];
    class Hears {
      @OnSecurityEvent('refused-proof')
      hear({ reason, suppressed }: SecurityEvent) {
        refused.push(...Array.from({ length: suppressed + 1 }, () => String(reason)));
      }
    }
    const apps = [await start(redis, [Hears]), await start(redis, [Hears])] as const;
    const browser = new DeviceBrowser(apps[0].url);
    const answer = await browser.send('POST', '/sign-in');
    const offer = /path="([^"]+)";challenge="([^"]+)"/.exec(String(answer.headers['secure-session-registration']))!;
    const browsers = Array.from({ length: 20 }, (_, i) => browser.movedTo(apps[i % 2]!.url));
    const answers = await Promise.all(browsers.map((each) => each.register(offer[1]!, offer[2]!)));
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      200,
      ...Array.from({ length: 19 }, () => 403),
    ]);
    const [winner] = browsers.filter(({ binding }) => binding);
    winner!.jar.delete('SESSION-device');
    expect((await winner!.get('/money')).body).toBe('money');
  });
});

describe('a request of a user costs no command more than without the option', () => {
  /** The commands that ten reads and ten writes take, those that scripts call included. */
  async function costOf(browser: DeviceBrowser): Promise<Record<string, number>> {
    await store.client.config('RESETSTAT');
    for (let i = 0; i < 10; i++) {
      expect((await browser.get('/inside')).body).toBe('in');
      expect((await browser.post('/count')).status).toBe(201);
    }
    const stats = [...(await commandStats(store.client))].filter(([name]) => !/^(config|info|ping)/.test(name));
    return Object.fromEntries(stats.map(([name, { calls }]) => [name, calls]));
  }

  async function userOf(deviceBound: SessionModuleOptions['deviceBound'], canBind: boolean): Promise<DeviceBrowser> {
    const { url } = await start({}, [], deviceBound);
    const browser = new DeviceBrowser(url, canBind);
    await browser.post('/sign-in');
    for (const path of ['/inside', '/inside']) await browser.get(path);
    const { device } = JSON.parse((await browser.get('/who')).body) as { device: { bound: boolean } | null };
    expect(device?.bound === true).toBe(canBind && deviceBound !== false);
    return browser;
  }

  it.each([
    ['report', true],
    ['report', false],
    ['enforce', true],
    ['enforce', false],
  ] as const)('mode %s, bound: %p', async (mode, canBind) => {
    const [without, user] = [await userOf(false, canBind), await userOf({ mode }, canBind)];
    // The work of an application in the background may come in between.
    await eventually(async () => expect(await costOf(user)).toEqual(await costOf(without)));
  });
});

it('a binding that nobody can read any more opens nothing, and is no end', async () => {
  const reasons: unknown[] = [];
  class Hears {
    @OnSecurityEvent('missing-proof')
    hear({ reason }: SecurityEvent) {
      reasons.push(reason);
    }
  }
  const app = await start({ encryption: { keys: [keyOf('2026-10')] } }, [Hears]);
  const browser = new DeviceBrowser(app.url);
  await browser.post('/sign-in');
  await browser.get('/who');
  const [key = ''] = await store.client.keys('*:sessions:[^e]*');
  const field = 'sessionAttr:nest-session.visitor.device';
  const text = (await store.client.hget(key, field))!;
  await store.client.hset(key, field, `${text.slice(0, -4)}AAAA`);
  for (const path of ['/inside', '/money']) expect((await browser.send('GET', path)).status).toBe(503);
  expect(reasons).toContain('unreadable');
  await store.client.hset(key, field, text);
  expect((await browser.get('/money')).body).toBe('money');
});
