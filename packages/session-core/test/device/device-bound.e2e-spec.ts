import { type Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { launchChromium, textAt } from '@nest-session/test-infrastructure/browser';
import type { CookieOptions, SessionModuleOptions } from '../../src/index.js';
import type { DeviceBinding } from '../../src/device/device-binding.js';
import { DEVICE_ATTRIBUTE } from '../../src/session/attribute-names.js';
import { TrackedSession } from '../../src/session/tracked-session.js';
import { STORE_FAILURE } from '../support/gated.repository.js';
import { heard, MINUTE } from './device.app.js';
import { DeviceBrowser } from './device.browser.js';
import { documentedLoot, HearsThefts, type Owner, THEFTS } from './device.thefts.js';
import { DeviceShop } from './device.shop.js';

LeakGuard.install();

let shop: DeviceShop;

async function start(...args: Parameters<typeof DeviceShop.start>): Promise<void> {
  shop = await DeviceShop.start(...args);
}

/** Starts it with a user who is signed in. */
async function startSignedIn(deviceBound: SessionModuleOptions['deviceBound'] = { mode: 'enforce' }): Promise<void> {
  await start({ deviceBound });
  await shop.signIn();
}

afterEach(async () => {
  // Any other status would end a binding.
  for (const { what, status } of shop.seen)
    if (what.includes('/session/device/')) expect([200, 403, 503]).toContain(status);
  await shop.stop();
});

describe('Chromium registers', () => {
  it.each([
    ['a link', '/callback', 'a'],
    ['a link and a redirect', '/callback-home', 'a'],
    ['a form', '/callback', 'button'],
  ] as const)('without cookies after a sign-in through %s of another site', async (_, path, what) => {
    await start();
    await shop.clickAtOtherSite(path, what);
    await shop.until('registered');
    expect(shop.seen).toContainEqual(
      expect.objectContaining({ what: 'POST /session/device/register', status: 200, cookies: [], site: 'same-origin' }),
    );
    expect(await shop.open('/money')).toEqual([200, 'money']);
    expect(JSON.parse((await shop.open('/who'))[1])).toMatchObject({ name: 'ann', device: { bound: true } });
    expect(shop.own).toEqual(['register 200']);
  });

  it('and keeps its session while the user reads, whatever who has only the session cookie does', async () => {
    await start();
    await shop.open('/callback');
    await shop.until('registered');
    const thief = new DeviceBrowser(shop.url('').replace('shop.test', '127.0.0.1'));
    for (const { name, value } of await shop.browser.cookies()) if (name === 'SESSION') thief.jar.set(name, value);
    for (let minutes = 1; minutes <= 5; minutes++) {
      shop.clock.advance(MINUTE);
      expect((await thief.get('/inside')).status).toBe(401);
    }
    expect(thief.own).toEqual([]);
    expect(await shop.open('/money')).toEqual([200, 'money']);
  });

  it('when it is told again, after an outage', async () => {
    await start();
    shop.store.break('look-up');
    await shop.open('/callback');
    await shop.until('registration TransientHttpError');
    shop.store.repair();
    expect((await shop.open('/money'))[0]).toBe(403);
    shop.clock.advance(MINUTE);
    await shop.open('/inside');
    await shop.until('registered');
    expect(await shop.open('/money')).toEqual([200, 'money']);
    expect(shop.own).toEqual(['register 503', 'register 200']);
  });

  const cookies: [string, CookieOptions, string?][] = [
    ['of this host alone', {}],
    ['with the prefix `__Host-`', { name: '__Host-sid', secure: true }],
    ['with the prefix `__Secure-`', { name: '__Secure-sid', secure: true }],
    ['of a path', { path: '/shop' }, 'shop'],
    ['with `SameSite=Strict`', { sameSite: 'strict' }],
    ['with `SameSite=None`', { name: 'sid', sameSite: 'none', secure: true }],
  ];
  it.each(cookies)('a cookie %s, described as it is set', async (_, cookie, prefix = '') => {
    await start({ cookie }, prefix);
    const at = prefix && `/${prefix}`;
    await shop.open(`${at}/callback`);
    await shop.until('registered');
    for (let i = 0; i < 3; i++) expect(await shop.open(`${at}/money`)).toEqual([200, 'money']);
    // Otherwise it would refresh before each request, or never.
    expect(shop.own).toEqual(['register 200']);
    await shop.runOut(`${cookie.name ?? 'SESSION'}-device`);
    for (let i = 0; i < 3; i++) expect(await shop.open(`${at}/money`)).toEqual([200, 'money']);
    expect(shop.own).toEqual(['register 200', 'refresh 200']);
  });
});

describe('Chromium renews its proof', () => {
  it('in one request, with the challenge that it got before, each time', async () => {
    await startSignedIn();
    for (let round = 1; round <= 3; round++) {
      await shop.runOut();
      expect(await shop.open('/money')).toEqual([200, 'money']);
    }
    expect(shop.own).toEqual(['refresh 200', 'refresh 200', 'refresh 200']);
    expect(shop.told.filter((each) => each === 'Refreshed')).toHaveLength(3);
    expect(heard).toEqual([]);
  });

  it('in two requests, when its challenge is too old', async () => {
    await startSignedIn();
    shop.clock.advance(80 * MINUTE);
    await shop.runOut();
    expect(await shop.open('/money')).toEqual([200, 'money']);
    expect(shop.own).toEqual(['refresh 403', 'refresh 200']);
  });

  it('for the same id after the session was rotated', async () => {
    await startSignedIn();
    await shop.open('/rotate');
    await shop.runOut();
    expect(await shop.open('/money')).toEqual([200, 'money']);
    expect(shop.own).toEqual(['refresh 200']);
  });

  it('once for two tabs and ten requests, and all are sent with it', async () => {
    await startSignedIn();
    await shop.runOut();
    const gate = shop.store.gate('look-up');
    const second = await shop.browser.newPage();
    const opening = [shop.open('/money'), shop.open('/inside', second)];
    await gate.reached();
    gate.open();
    expect(await Promise.all(opening)).toEqual([
      [200, 'money'],
      [200, 'in'],
    ]);
    await shop.runOut();
    const fetched = await shop.page.evaluate(async () =>
      Promise.all(Array.from({ length: 10 }, async () => (await fetch('/inside')).text())),
    );
    expect(fetched).toEqual(Array.from({ length: 10 }, () => 'in'));
    expect(shop.own).toEqual(['refresh 200', 'refresh 200']);
  });

  it('of each of its sessions, which do not mix', async () => {
    await start({ multipleSessions: true });
    for (const alias of ['', '?_s=1']) {
      await shop.open(`/callback${alias}`);
      await shop.until('registered', alias ? 2 : 1);
      expect(await shop.open(`/money${alias}`)).toEqual([200, 'money']);
    }
    shop.clock.advance(MINUTE);
    const names = ['SESSION-device', 'SESSION.1-device'];
    expect(await shop.cookieNames()).toEqual(['SESSION', ...names.slice(0, 1), 'SESSION.1', ...names.slice(1)]);
    for (const name of names) await shop.runOut(name);
    for (const alias of ['', '?_s=1']) expect(await shop.open(`/money${alias}`)).toEqual([200, 'money']);
    expect(shop.own).toEqual(['register 200', 'register 200', 'refresh 200', 'refresh 200']);
    expect(await shop.cookieNames()).toEqual(expect.arrayContaining(names));
  });

  it('before it posts a body', async () => {
    await startSignedIn();
    await shop.runOut();
    const text = await shop.page.evaluate(async () => (await fetch('/order', { method: 'POST', body: 'a' })).text());
    expect(text).toBe('ann');
    expect(shop.requests).toEqual(['POST /session/device/refresh 200', 'POST /order 200']);
  });

  it('for no path that is excluded', async () => {
    await startSignedIn({ mode: 'enforce', exclude: ['/assets'] });
    await shop.runOut();
    expect(await shop.page.evaluate(async () => (await fetch('/assets/logo')).text())).toBe('logo');
    expect(shop.own).toEqual([]);
    expect(await shop.open('/money')).toEqual([200, 'money']);
  });
});

describe('a link from another site, once the proof has run out,', () => {
  it('leads to a page that navigates again, with the fragment', async () => {
    await startSignedIn();
    await shop.runOut();
    await shop.clickAtOtherSite('/inside?a=1#part');
    await shop.untilSeen('GET /inside', { site: 'same-origin', status: 200 });
    await shop.page.waitForLoadState();
    expect(await shop.page.innerText('body')).toBe('in');
    expect(shop.page.url()).toBe(shop.url('/inside?a=1#part'));
    const [first, refresh, second] = shop.seen.filter(({ what }) => !what.includes('favicon'));
    // It says nothing of a proof that it has not renewed.
    expect(first).toMatchObject({ what: 'GET /inside', site: 'cross-site', cookies: ['SESSION'], skipped: undefined });
    expect(refresh).toMatchObject({ what: 'POST /session/device/refresh', status: 200 });
    expect(second?.cookies).toEqual(expect.arrayContaining(['SESSION', 'SESSION-device']));
    await shop.page.goBack();
    expect(new URL(shop.page.url()).hostname).toBe('idp.example');
  });

  it('does so without scripts', async () => {
    await startSignedIn();
    await shop.runOut();
    const cdp = await shop.browser.newCDPSession(shop.page);
    await cdp.send('Emulation.setScriptExecutionDisabled', { value: true });
    await shop.clickAtOtherSite('/inside?a=1#part');
    await shop.untilSeen('GET /inside', { site: 'same-origin', status: 200 });
    await shop.page.waitForURL(shop.url('/inside?a=1'));
    expect(shop.own).toEqual(['refresh 200']);
  });

  it('does so through a service worker', async () => {
    await startSignedIn();
    await shop.page.evaluate("navigator.serviceWorker.register('/worker', { scope: '/' })");
    await shop.page.evaluate('navigator.serviceWorker.ready.then(() => undefined)');
    await shop.runOut();
    await shop.clickAtOtherSite('/inside');
    await shop.untilSeen('GET /inside', { site: 'same-origin', status: 200 });
    await shop.page.getByText('in', { exact: true }).waitFor();
    expect(shop.own).toEqual(['refresh 200']);
  });

  it('leads to a 503 while there is an outage, not to a sign-in', async () => {
    await startSignedIn();
    await shop.runOut();
    shop.store.break('look-up');
    await shop.clickAtOtherSite('/inside');
    const skipped = expect.stringContaining('server_error') as string;
    await shop.untilSeen('GET /inside', { site: 'same-origin', status: 503, skipped });
  });

  it('is served at once where the option names the site, although the refresh has no cookies', async () => {
    await startSignedIn({ mode: 'enforce', refreshFrom: ['idp.example'] });
    await shop.runOut();
    await shop.clickAtOtherSite('/money');
    await shop.page.getByText('money', { exact: true }).waitFor();
    const [refresh, page] = shop.seen;
    expect(refresh).toMatchObject({ what: 'POST /session/device/refresh', status: 200, cookies: [] });
    expect(page).toMatchObject({ what: 'GET /money', site: 'cross-site', cookies: ['SESSION', 'SESSION-device'] });
  });
});

describe('a front end on another origin, once the proof has run out,', () => {
  it.each([
    [['https://app.shop.test'], 200],
    [[], 401],
  ])('is served where csrf.trustedOrigins is %j: %s', async (trustedOrigins, status) => {
    await start({ csrf: { trustedOrigins } });
    await shop.signIn();
    await shop.runOut();
    await shop.fetchFrom('app.shop.test', '/inside');
    await shop.untilSeen('GET /inside', { status, site: 'same-site' });
  });
});

describe('an outage', () => {
  it('is over for the browser with the next page', async () => {
    await startSignedIn();
    await shop.runOut();
    shop.store.break('look-up');
    const response = await shop.page.goto(shop.url('/inside'));
    expect([response!.status(), response!.headers()['retry-after']]).toEqual([503, '5']);
    expect(shop.seen.find(({ what }) => what === 'GET /inside')?.skipped).toContain('server_error');
    shop.store.repair();
    expect(await shop.open('/money')).toEqual([200, 'money']);
    expect(shop.own).toEqual(['refresh 503', 'refresh 200']);
  });

  it('after which the browser still waits is over with a new sign-in', async () => {
    await startSignedIn();
    await shop.runOut();
    shop.store.break('look-up');
    // It asks at each of the first requests, and waits longer after each attempt: here for more than five pages.
    for (let quiet = 0; ;) {
      const asked = shop.own.length;
      expect((await shop.open('/inside'))[0]).toBe(503);
      if (shop.own.length === asked) quiet++;
      else if (quiet < 5) quiet = 0;
      else break;
    }
    shop.store.repair();
    expect((await shop.open('/inside'))[0]).toBe(503);
    expect(shop.seen.findLast(({ what }) => what === 'GET /inside')?.skipped).toContain('unreachable');
    await shop.open('/callback');
    await shop.until('registered');
    expect(await shop.open('/money')).toEqual([200, 'money']);
  });
});

describe('the binding of a browser ends', () => {
  it('with another sign-in, when the browser asks for the old one again', async () => {
    await startSignedIn();
    const bindingId = async () => {
      const [session] = await shop.store.findByIndex('principal', 'ann');
      return TrackedSession.of(session!).getOwnAttribute<DeviceBinding>(DEVICE_ATTRIBUTE)!.id;
    };
    const old = await bindingId();
    await shop.open('/callback');
    await shop.until('registered');
    shop.seen.length = 0;
    await shop.runOut();
    expect(await shop.open('/money')).toEqual([200, 'money']);
    const now = await bindingId();
    expect(now).not.toBe(old);
    // It asks for both in the order of their ids, until it has the cookie.
    const isOldFirst = old < now;
    expect(shop.seen.flatMap(({ id }) => id ?? [])).toEqual(isOldFirst ? [old, now] : [now]);
    await shop.until('ended ServerRequested', Number(isOldFirst));
    await shop.runOut();
    expect(await shop.open('/money')).toEqual([200, 'money']);
    expect(shop.seen.flatMap(({ id }) => id ?? [])).toEqual(isOldFirst ? [old, now, now] : [now, now]);
  });

  it('with a sign-out, before the next page', async () => {
    await startSignedIn();
    await shop.open('/sign-out');
    await shop.until('ended ServerRequested');
    expect(shop.requests).toEqual(['GET /sign-out 303', 'POST /session/device/refresh 200', 'GET /landing 200']);
    expect(shop.seen[1]?.cookies).toEqual([]);
    expect(await shop.cookieNames()).toEqual([]);
    await shop.open('/who');
    expect(shop.own).toEqual(['refresh 200']);
  });

  it('with an end elsewhere, and the next sign-in binds again', async () => {
    await startSignedIn();
    await shop.store.deleteByIndex('principal', 'ann');
    expect((await shop.open('/inside'))[0]).toBe(401);
    await shop.runOut();
    expect((await shop.open('/inside'))[0]).toBe(401);
    await shop.until('ended ServerRequested');
    await shop.open('/callback');
    await shop.until('registered');
    expect(await shop.open('/money')).toEqual([200, 'money']);
  });

  it('with `Clear-Site-Data`', async () => {
    await startSignedIn();
    await shop.open('/forget');
    await shop.until('ended StoragePartitionCleared');
    expect(await shop.cookieNames()).toEqual([]);
    await shop.open('/callback');
    await shop.until('registered');
    expect(await shop.open('/money')).toEqual([200, 'money']);
  });
});

describe('a thief gets of a Chromium what the page says when', () => {
  let gate: Gate;
  const owner: Owner = {
    begin: async () => {
      gate = shop.store.gate('look-up');
      await shop.open('/callback');
      await gate.reached();
    },
    register: async (isLost = false) => {
      if (isLost) gate.fail(STORE_FAILURE);
      else gate.open();
      shop.store.repair();
      await shop.until(isLost ? 'registration TransientHttpError' : 'registered');
    },
    post: async (path) => {
      await shop.page.evaluate(async (to) => void (await fetch(to, { method: 'POST' })), path);
    },
    visit: async () => {
      if ((await shop.cookieNames()).includes('SESSION-device')) await shop.runOut();
      return (await shop.open('/inside'))[0];
    },
    cookies: async () => new Map((await shop.browser.cookies()).map(({ name, value }) => [name, value])),
  };

  it.each(
    Object.keys(THEFTS).flatMap((theft) => (['enforce', 'report'] as const).map((mode) => [theft, mode] as const)),
  )('%s, mode %s', async (theft, mode) => {
    await start({ deviceBound: { mode } }, '', [HearsThefts]);
    const { clock } = shop;
    const origin = shop.url('').replace('shop.test', '127.0.0.1');
    expect(await THEFTS[theft]!({ owner, origin, clock })).toEqual(documentedLoot(theft, `bound, ${mode}`));
  });
});

describe('a copied jar', () => {
  /** Another Chromium, with the cookies of the owner but those left out. */
  async function withThief(leftOut: string[], use: (open: (path: string) => Promise<string>) => Promise<void>) {
    const browser = await launchChromium();
    try {
      const context = await browser.newContext();
      await context.addCookies((await shop.browser.cookies()).filter(({ name }) => !leftOut.includes(name)));
      const page = await context.newPage();
      await use((path) => textAt(page, shop.url(path)));
    } finally {
      await browser.close();
    }
  }

  it('opens nothing without the bound cookie, and with it until that runs out', async () => {
    await startSignedIn();
    await withThief(['SESSION-device'], async (open) => {
      expect(await open('/inside')).toContain('device-proof-missing');
      expect(await open('/money')).toContain('device-proof-missing');
      expect(JSON.parse(await open('/who'))).toEqual({ name: null, device: null });
    });
    await withThief([], async (open) => {
      expect(await open('/money')).toBe('money');
      shop.clock.advance(10 * MINUTE);
      expect(await open('/money')).toContain('device-proof-missing');
    });
    expect(new Set(heard)).toEqual(new Set(['missing-proof missing']));
    await shop.runOut();
    expect(await shop.open('/money')).toEqual([200, 'money']);
  });

  it('is only told of in the mode `report`', async () => {
    await startSignedIn({ mode: 'report' });
    await withThief(['SESSION-device'], async (open) => {
      expect(await open('/inside')).toBe('in');
      expect(await open('/money')).toBe('money');
    });
    expect(new Set(heard)).toEqual(new Set(['missing-proof missing']));
    await shop.runOut();
    expect(await shop.open('/money')).toEqual([200, 'money']);
    expect(shop.own).toEqual(['refresh 200']);
  });
});
