import { LeakGuard } from '@nest-session/test-infrastructure';
import { launchChromium, textAt } from '@nest-session/test-infrastructure/browser';
import { eventually, RedisServer } from '@nest-session/testing';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { Keycloak, type KeycloakUser } from './keycloak/keycloak.js';
import { EVENTS_PATH, LOGOUT_PATH } from './support/logout.proxy.js';
import { ProviderPage, Shop } from './support/shop-at-provider.js';

LeakGuard.install();

const SLOWLY = 300_000;
// Keycloak and the pages of it are slow for the first time.
const PATIENTLY = { timeout: 120_000 };

const keycloak = new Keycloak();
let page: ProviderPage;
let redis: RedisServer;
let chromium: Browser;
let shop: Shop;
beforeAll(async () => {
  page = await ProviderPage.compile();
  redis = await RedisServer.start();
  chromium = await launchChromium();
  const client = { ISSUER: keycloak.issuer, CLIENT_SECRET: 'secret-of-the-shop' };
  shop = await Shop.start(page, { REDIS_URL: redis.url, ...client });
}, SLOWLY);
afterAll(async () => {
  await shop?.stop();
  await chromium?.close();
  await redis?.stop();
  await page?.remove();
});

const browsers: BrowserContext[] = [];
let user: KeycloakUser;
let laptop: Page;
let phone: Page;
let users = 0;
beforeEach(async () => {
  await keycloak.serve(shop.origin, LOGOUT_PATH);
  user = await keycloak.newUser(`user-${++users}`);
  laptop = await signedIn(user);
  phone = await signedIn(user);
  shop.logouts.length = 0;
}, SLOWLY);
afterEach(async () => {
  await Promise.all(browsers.splice(0).map((browser) => browser.close()));
});

async function signedIn({ username }: KeycloakUser): Promise<Page> {
  const browser = await chromium.newContext();
  browser.setDefaultTimeout(PATIENTLY.timeout);
  browsers.push(browser);
  const tab = await browser.newPage();
  await tab.goto(`${shop.origin}/sign-in`);
  await tab.fill('#username', username);
  await tab.fill('#password', 'engine');
  await tab.click('[type=submit]');
  await tab.waitForURL(`${shop.origin}/me`);
  return tab;
}

/** Whether the shop still knows the user. */
async function isSignedIn(tab: Page): Promise<boolean> {
  return (await textAt(tab, `${shop.origin}/me`)) === JSON.stringify({ user: user.id });
}

/** Waits until so many logout tokens have come, and expects this of each. Keycloak does not repeat. */
async function expectTokens(count: number, claims: object = { sub: user.id, sid: expect.any(String) }): Promise<void> {
  await eventually(() => expect(shop.logouts).toHaveLength(count), PATIENTLY);
  for (const { status, header, claims: sent } of shop.logouts) {
    expect({ status, header, claims: sent }).toEqual({
      status: 200,
      header: { alg: 'RS256', typ: 'logout+jwt', kid: expect.any(String) },
      claims: {
        iss: keycloak.issuer,
        aud: 'shop',
        iat: expect.any(Number),
        exp: expect.any(Number),
        jti: expect.any(String),
        typ: 'Logout',
        events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
        ...claims,
      },
    });
  }
}

/** What Keycloak has sent until then is there when it has sent the token of another user, of which it tells later. */
async function expectNoToken(): Promise<void> {
  await keycloak.serve(shop.origin, LOGOUT_PATH);
  const other = await keycloak.newUser(`user-${++users}`);
  await signedIn(other);
  await keycloak.request('DELETE', `/sessions/${(await keycloak.sessionsOf(other))[0]!}`);
  await expectTokens(1, { sub: other.id, sid: expect.any(String) });
}

describe('Keycloak sends a token, and a session ends, when', () => {
  it('an administrator ends a session: that one', async () => {
    const [first] = await keycloak.sessionsOf(user);
    await keycloak.request('DELETE', `/sessions/${first!}`);
    await expectTokens(1, { sub: user.id, sid: first });
    expect([await isSignedIn(laptop), await isSignedIn(phone)]).toEqual([false, true]);
  });

  it('an administrator signs the user out: all of them', async () => {
    await keycloak.request('POST', `/users/${user.id}/logout`);
    await expectTokens(2);
    expect([await isSignedIn(laptop), await isSignedIn(phone)]).toEqual([false, false]);
  });

  it('an administrator ends a session whose id it may not send: all of them', async () => {
    await keycloak.serve(shop.origin, LOGOUT_PATH, { attributes: { 'backchannel.logout.session.required': 'false' } });
    const [first] = await keycloak.sessionsOf(user);
    await keycloak.request('DELETE', `/sessions/${first!}`);
    await expectTokens(1, { sub: user.id });
    expect([await isSignedIn(laptop), await isSignedIn(phone)]).toEqual([false, false]);
  });

  it('the user signs out of all devices: all of them', async () => {
    await laptop.goto(`${keycloak.issuer}/account/account-security/device-activity`);
    await laptop.getByRole('button', { name: 'Sign out all devices' }).click();
    await laptop.getByRole('button', { name: 'Confirm' }).click();
    await expectTokens(2);
    expect([await isSignedIn(laptop), await isSignedIn(phone)]).toEqual([false, false]);
  });

  it('the user signs out of the shop, which Keycloak does not ask about: that one, before', async () => {
    await laptop.goto(shop.origin);
    await laptop.getByRole('button', { name: 'Sign out' }).click();
    await laptop.waitForURL(`${shop.origin}/`);
    await expectTokens(1);
    expect(await keycloak.sessionsOf(user)).toHaveLength(1);
    expect([await isSignedIn(laptop), await isSignedIn(phone)]).toEqual([false, true]);
  });

  it('the user changes the password, and signs out of other devices: the others', async () => {
    await changePassword({ isSigningOut: true });
    await expectTokens(1);
    expect([await isSignedIn(laptop), await isSignedIn(phone)]).toEqual([true, false]);
  });
});

/** On the laptop, by the page of Keycloak. */
async function changePassword({ isSigningOut }: { isSigningOut: boolean }): Promise<void> {
  await laptop.goto(`${keycloak.issuer}/account/account-security/signing-in`);
  await laptop.getByRole('button', { name: 'Update' }).first().click();
  await laptop.fill('#password-new', 'another');
  await laptop.fill('#password-confirm', 'another');
  await laptop.getByLabel('Sign out from other devices').setChecked(isSigningOut);
  await laptop.getByRole('button', { name: 'Submit' }).click();
  await laptop.waitForURL(/account-security\/signing-in/);
}

// `absoluteTimeout` ends these.
describe('Keycloak sends no token, and sessions go on, when', () => {
  afterEach(async () => expect([await isSignedIn(laptop), await isSignedIn(phone)]).toEqual([true, true]), SLOWLY);

  it('the user changes the password alone', async () => {
    await changePassword({ isSigningOut: false });
    await expectNoToken();
  });

  it('an administrator sets another password', async () => {
    const password = { type: 'password', value: 'another', temporary: false };
    await keycloak.request('PUT', `/users/${user.id}/reset-password`, password);
    await expectNoToken();
  });

  it('an administrator disables the user', async () => {
    const before = await keycloak.request<object>('GET', `/users/${user.id}`);
    await keycloak.request('PUT', `/users/${user.id}`, { ...before, enabled: false });
    await expectNoToken();
  });

  it('an administrator deletes the user', async () => {
    await keycloak.request('DELETE', `/users/${user.id}`);
    await expectNoToken();
  });

  it('an administrator signs out all active sessions', async () => {
    await keycloak.request('POST', '/logout-all');
    await expectNoToken();
  });

  it('the client has front-channel logout', async () => {
    await keycloak.serve(shop.origin, LOGOUT_PATH, { frontchannelLogout: true });
    await keycloak.request('POST', `/users/${user.id}/logout`);
    await expectNoToken();
  });
});

describe('Keycloak with its feature ssf pushes events', () => {
  /** Waits for an event of a name, which the shop has accepted. Keycloak sends from a queue. */
  async function expectEvent(name: string, claims: object): Promise<void> {
    await eventually(() => {
      const told = shop.events.find(({ claims: { events } }) => Object.keys(events)[0]!.endsWith(`/${name}`));
      expect(told).toMatchObject({
        status: 202,
        header: { alg: 'RS256', typ: 'secevent+jwt' },
        claims: { iss: keycloak.issuer, aud: 'shop', ...claims },
      });
    }, PATIENTLY);
  }

  beforeAll(() => keycloak.pushEvents(`${shop.origin}${EVENTS_PATH}`, 'a state'), SLOWLY);
  beforeEach(async () => {
    await keycloak.serve(shop.origin, LOGOUT_PATH, { attributes: { 'backchannel.logout.url': '' } });
  });

  it('of verification', async () => {
    await expectEvent('verification', { sub_id: { format: 'opaque', id: expect.any(String) } });
    expect(shop.output).toContain('The provider told verification: 0 sessions');
  });

  it('when an administrator signs the user out: all sessions end', async () => {
    await keycloak.request('POST', `/users/${user.id}/logout`);
    const subject = { format: 'iss_sub', iss: keycloak.issuer, sub: user.id };
    await expectEvent('session-revoked', {
      sub_id: { format: 'complex', user: subject, session: { format: 'opaque', id: 'ALL' } },
    });
    expect([await isSignedIn(laptop), await isSignedIn(phone)]).toEqual([false, false]);
    expect(shop.logouts).toEqual([]);
  });

  it('when an administrator sets another password: the user has to log in again for what asks for that', async () => {
    const password = { type: 'password', value: 'another', temporary: false };
    await keycloak.request('PUT', `/users/${user.id}/reset-password`, password);
    await expectEvent('credential-change', { sub_id: { format: 'iss_sub', iss: keycloak.issuer, sub: user.id } });
    await eventually(() => expect(shop.output).toContain('The provider told credential-change: 2 sessions'));
    expect([await isSignedIn(laptop), await isSignedIn(phone)]).toEqual([true, true]);
  });
});
