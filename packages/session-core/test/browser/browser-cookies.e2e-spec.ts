import { LeakGuard } from '@nest-session/test-infrastructure';
import type { SessionModuleOptions } from '../../src/index.js';
import { SIGNING_KEYS } from '../support/signing.keys.js';
import type { Browser, BrowserContext, Cookie, Page } from 'playwright-core';
import { launchChromium, textAt } from '@nest-session/test-infrastructure/browser';
import { Shop } from './shop.app.js';

LeakGuard.install();

const DAY = 24 * 60 * 60;

let browser: Browser;
beforeAll(async () => {
  browser = await launchChromium();
}, 120_000);
afterAll(() => browser?.close());

describe('in Chromium, the session cookie', () => {
  let shop: Shop;
  let user: BrowserContext;
  let tab: Page;

  async function start(cookie: SessionModuleOptions['cookie']): Promise<void> {
    shop = await Shop.start({ cookie });
    user = await browser.newContext();
    tab = await user.newPage();
  }
  afterEach(async () => {
    await user?.close();
    await shop?.stop();
  });

  async function cookie(name = 'SESSION'): Promise<Cookie | undefined> {
    return (await user.cookies()).find((each) => each.name === name);
  }

  /** Submits the form of the page, and resolves to the text of the next page. */
  async function submit(): Promise<string> {
    await tab.evaluate('document.forms[0].submit()');
    await tab.waitForURL(({ hostname }) => hostname === 'shop.test');
    return tab.innerText('body');
  }

  it('ends with the browser, is hidden from scripts, and is removed by the logout', async () => {
    await start({});
    expect(await textAt(tab, shop.https('shop.test', '/visit'))).toBe('visit 1');
    expect(await textAt(tab, shop.https('shop.test', '/visit'))).toBe('visit 2');
    expect(await cookie()).toMatchObject({ httpOnly: true, secure: true, sameSite: 'Lax', expires: -1, path: '/' });
    expect(await tab.evaluate('document.cookie')).toBe('');
    const before = await cookie();
    expect(await textAt(tab, shop.https('shop.test', '/login'))).toBe('signed in');
    expect((await cookie())?.value).not.toBe(before?.value);
    expect(await textAt(tab, shop.https('shop.test', '/visit'))).toBe('visit 3');
    await textAt(tab, shop.https('shop.test', '/logout'));
    expect(await user.cookies()).toEqual([]);
    expect(await textAt(tab, shop.https('shop.test', '/visit'))).toBe('visit 1');
  });

  describe('with Secure', () => {
    it('is kept over https only, and one log line says why', async () => {
      await start({ secure: true });
      expect(await textAt(tab, shop.http('shop.test', '/visit'))).toBe('visit 1');
      expect(await textAt(tab, shop.http('shop.test', '/visit'))).toBe('visit 1');
      expect(await user.cookies()).toEqual([]);
      expect(shop.log.matching(/with Secure on .* over http: browsers drop it/)).toHaveLength(1);
      expect(await textAt(tab, shop.https('shop.test', '/visit'))).toBe('visit 1');
      expect(await textAt(tab, shop.https('shop.test', '/visit'))).toBe('visit 2');
      expect(await textAt(tab, shop.http('shop.test', '/visits'))).toBe('visits 0');
    });

    it('is kept over http on localhost, without a log line', async () => {
      await start({ secure: true });
      expect(await textAt(tab, shop.http('localhost', '/visit'))).toBe('visit 1');
      expect(await textAt(tab, shop.http('localhost', '/visit'))).toBe('visit 2');
      expect(shop.log.lines).toEqual([]);
    });

    it('auto is kept over http and over https', async () => {
      await start({ secure: 'auto' });
      await textAt(tab, shop.http('plain.test', '/visit'));
      expect(await textAt(tab, shop.http('plain.test', '/visit'))).toBe('visit 2');
      expect(await cookie()).toMatchObject({ secure: false });
      await textAt(tab, shop.https('shop.test', '/visit'));
      expect(await textAt(tab, shop.https('shop.test', '/visit'))).toBe('visit 2');
    });
  });

  describe('with SameSite', () => {
    it.each<[SessionModuleOptions['cookie'], { link: string; form: string }]>([
      [{ sameSite: 'strict' }, { link: 'visits 0', form: 'visits 0' }],
      [{ sameSite: 'lax' }, { link: 'visits 1', form: 'visits 0' }],
      [
        { sameSite: 'none', secure: true },
        { link: 'visits 1', form: 'visits 1' },
      ],
    ])('%p is sent from another site as the value allows', async (options, expected) => {
      await start(options);
      const target = encodeURIComponent(shop.https('shop.test', '/visits'));
      await textAt(tab, shop.https('shop.test', '/visit'));
      await textAt(tab, shop.https('other.test', `/door/get?to=${target}`));
      const link = await submit();
      await textAt(tab, shop.https('other.test', `/door/post?to=${target}`));
      const form = await submit();
      expect({ link, form }).toEqual(expected);
      expect(await textAt(tab, shop.https('shop.test', '/visits'))).toBe('visits 1');
    });
  });

  describe('with the prefix __Host-', () => {
    const name = '__Host-SESSION';

    it('is kept, and another host of the domain cannot set it', async () => {
      await start({ secure: true });
      await textAt(tab, shop.https('shop.test', '/visit'));
      const own = await cookie(name);
      expect(own).toMatchObject({ secure: true, path: '/', domain: 'shop.test' });
      await textAt(tab, shop.https('evil.shop.test', '/blank'));
      await tab.evaluate(`document.cookie = '${name}=planted; Secure; Path=/; Domain=shop.test'`);
      expect(await user.cookies()).toEqual([own]);
      expect(await textAt(tab, shop.https('shop.test', '/visit'))).toBe('visit 2');
      await textAt(tab, shop.https('shop.test', '/logout'));
      expect(await user.cookies()).toEqual([]);
    });

    it('keeps planted cookies out: without the prefix they come first, and the live one still opens the session', async () => {
      await start({ name: 'SESSION', secure: true });
      await textAt(tab, shop.https('shop.test', '/visit'));
      await textAt(tab, shop.https('evil.shop.test', '/blank'));
      for (const path of ['/', '/visit', '/visits']) {
        await tab.evaluate(`document.cookie = 'SESSION=${'x'.repeat(43)}; Secure; Path=${path}; Domain=shop.test'`);
      }
      expect(await user.cookies()).toHaveLength(4);
      expect(await textAt(tab, shop.https('shop.test', '/visit'))).toBe('visit 2');
    });
  });

  describe('with Partitioned', () => {
    async function framedBy(site: string): Promise<void> {
      const of = encodeURIComponent(shop.https('shop.test', '/visit'));
      await textAt(tab, shop.https(site, `/frame?of=${of}`));
    }

    async function partitions(): Promise<Set<string | undefined>> {
      return new Set((await user.cookies()).map(({ partitionKey }) => partitionKey));
    }

    it('is a separate cookie for each site that embeds the application, and each is removed by its own logout', async () => {
      await start({ name: '__Host-sid', secure: true, sameSite: 'none', partitioned: true });
      await framedBy('a.test');
      await framedBy('b.test');
      await framedBy('b.test');
      expect(await textAt(tab, shop.https('shop.test', '/visit'))).toBe('visit 1');
      expect(await partitions()).toEqual(new Set(['https://a.test', 'https://b.test', 'https://shop.test']));
      await textAt(tab, shop.https('shop.test', '/logout'));
      expect(await partitions()).toEqual(new Set(['https://a.test', 'https://b.test']));
    });

    it('is necessary where third-party cookies are blocked: without it, no cookie is kept', async () => {
      await start({ name: '__Host-sid', secure: true, sameSite: 'none' });
      await framedBy('a.test');
      expect(await user.cookies()).toEqual([]);
    });
  });

  describe('with Max-Age', () => {
    it('outlives the browser by that time, and is removed by the logout', async () => {
      await start({ maxAge: '30d' });
      const before = Date.now() / 1000;
      await textAt(tab, shop.https('shop.test', '/visit'));
      expect((await cookie())!.expires).toBeGreaterThanOrEqual(before + 30 * DAY - 1);
      expect((await cookie())!.expires).toBeLessThanOrEqual(Date.now() / 1000 + 30 * DAY + 1);
      await textAt(tab, shop.https('shop.test', '/logout'));
      expect(await user.cookies()).toEqual([]);
    });

    it('of 400 days is kept without being shortened', async () => {
      await start({ maxAge: '400d' });
      const before = Date.now() / 1000;
      await textAt(tab, shop.https('shop.test', '/visit'));
      expect((await cookie())!.expires).toBeGreaterThanOrEqual(before + 400 * DAY - 1);
    });

    it('outlives the browser only after a login that uses RememberMe', async () => {
      await start({ rememberMe: '30d' });
      await textAt(tab, shop.https('shop.test', '/login'));
      expect((await cookie())!.expires).toBe(-1);
      const before = Date.now() / 1000;
      await textAt(tab, shop.https('shop.test', '/login/remember'));
      expect((await cookie())!.expires).toBeGreaterThanOrEqual(before + 30 * DAY - 1);
      // Every new token of that session gets a cookie with Max-Age as well.
      await textAt(tab, shop.https('shop.test', '/login'));
      expect((await cookie())!.expires).toBeGreaterThanOrEqual(before + 30 * DAY - 1);
    });
  });

  it('with a list of domains is shared by all hosts of the domain, and removed from all of them by a logout', async () => {
    await start({ domain: ['other.test', 'shop.test'] });
    await textAt(tab, shop.https('shop.test', '/visit'));
    expect(await textAt(tab, shop.https('www.shop.test', '/visit'))).toBe('visit 2');
    expect(await cookie()).toMatchObject({ domain: '.shop.test' });
    await textAt(tab, shop.https('www.shop.test', '/logout'));
    expect(await user.cookies()).toEqual([]);
  });

  it('for a foreign domain is not kept, and one log line says why', async () => {
    await start({ domain: 'other.test' });
    await textAt(tab, shop.https('shop.test', '/visit'));
    expect(await textAt(tab, shop.https('shop.test', '/visit'))).toBe('visit 1');
    expect(shop.log.matching(/for the domain other.test/)).toHaveLength(1);
  });

  it('with a signature opens the session in the next request', async () => {
    await start({ signingKeys: SIGNING_KEYS });
    await textAt(tab, shop.https('shop.test', '/visit'));
    expect(await textAt(tab, shop.https('shop.test', '/visit'))).toBe('visit 2');
  });
});
