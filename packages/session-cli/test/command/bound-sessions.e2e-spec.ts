import { LeakGuard } from '@nest-session/test-infrastructure';
import { DeviceRoutes } from '../../../session-core/test/device/device.app.js';
import { DeviceBrowser } from '../../../session-core/test/device/device.browser.js';
import { App } from '../../../session-redis/test/support/app.fixture.js';
import { keyOf } from '../../../session-redis/test/support/encryption.fixture.js';
import { Store } from '../../../session-redis/test/support/store.fixture.js';
import { jsonOf, runCommand } from '../support/command.process.js';

LeakGuard.install();

let store: Store;
let app: App | undefined;
beforeAll(async () => {
  store = await Store.open();
});
afterEach(async () => {
  await app?.stop();
  await store.client.flushall();
});
afterAll(() => store.close());

async function bound(redis: object = {}): Promise<{ env: { REDIS_URL: string }; id: string; browser: DeviceBrowser }> {
  app = await App.start({
    redis: { url: store.server.url, ...redis },
    session: { deviceBound: { mode: 'enforce' } },
    controllers: [DeviceRoutes],
    handlers: false,
    configure: (nest: { set(name: string, value: string): void }) => nest.set('trust proxy', 'loopback'),
  });
  const browser = new DeviceBrowser(app.url);
  await browser.post('/sign-in');
  expect((await browser.get('/money')).body).toBe('money');
  const env = { REDIS_URL: store.server.url };
  const { json } = await jsonOf<{ sessions: { id: string }[] }>('list --user ann', env);
  return { env, id: json.sessions[0]!.id, browser };
}

describe('the command, on a session that is bound to a browser', () => {
  it('shows since when it is bound, and by which algorithm, and nothing that opens it', async () => {
    const { env, id, browser } = await bound();
    const { json } = await jsonOf<{ bound: unknown }>(`show ${id}`, env);
    expect(json.bound).toEqual({ bound: true, since: expect.any(Number), algorithm: 'ES256' });
    const { stdout } = await runCommand(['show', id], env);
    expect(stdout).toMatch(/^bound +since \d{4}-\d\d-\d\d.*, ES256$/m);
    for (const text of [stdout, JSON.stringify(json)]) {
      expect(text).not.toMatch(/secret|publicKey/);
      expect(text).not.toContain(browser.binding!.id);
    }
  });

  it('says nothing of it where the session is encrypted, or bound to no browser', async () => {
    const { env, id } = await bound({ encryption: { keys: [keyOf('2026-10')] } });
    expect((await runCommand(['show', id], env)).stdout).toMatch(/^state +live$/m);
    expect((await runCommand(['show', id], env)).stdout).not.toMatch(/^bound/m);
  });

  it('verifies it without a finding, also when its index has lost it, and the browser proves itself then', async () => {
    const { env, id, browser } = await bound();
    expect(await runCommand('verify', env)).toMatchObject({ code: 0 });
    const [index] = await store.client.keys('*index:nest-session.device:*');
    expect(await store.client.zrem(index!, id)).toBe(1);
    const found = await runCommand('verify', env);
    expect([found.code, found.stdout]).toEqual([2, expect.stringContaining('An index lacks a session of its value')]);
    expect(await runCommand('verify --repair', env)).toMatchObject({ code: 0 });
    browser.jar.delete('SESSION-device');
    expect((await browser.get('/money')).body).toBe('money');
  });

  it('erases all that is kept of the browser with the user', async () => {
    const { env, browser } = await bound();
    expect(await runCommand('erase --user ann --yes', env)).toMatchObject({ code: 0 });
    const keys = await store.client.keys('*');
    const texts = await Promise.all(keys.map((key) => store.client.dump(key)));
    expect([...keys, ...texts].filter((text) => /device|publicKey/.test(String(text)))).toEqual([]);
    await browser.refresh();
    expect(browser.binding).toBeUndefined();
  });
});
