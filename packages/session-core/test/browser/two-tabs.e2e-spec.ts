import { LeakGuard } from '@nest-session/test-infrastructure';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { launchChromium, textAt } from '@nest-session/test-infrastructure/browser';
import { Shop } from './shop.app.js';

LeakGuard.install();

let browser: Browser;
beforeAll(async () => {
  browser = await launchChromium();
}, 120_000);
afterAll(() => browser?.close());

describe('in Chromium, two tabs with a session each', () => {
  let shop: Shop;
  let user: BrowserContext;
  let first: Page;
  let second: Page;
  beforeEach(async () => {
    shop = await Shop.start({ multipleSessions: true, cookie: { name: '__Host-sid', secure: true } });
    user = await browser.newContext();
    [first, second] = [await user.newPage(), await user.newPage()];
  });
  afterEach(async () => {
    await user?.close();
    await shop?.stop();
  });

  const inFirst = (path: string) => textAt(first, shop.https('shop.test', path));
  const inSecond = (path: string) => textAt(second, shop.https('shop.test', `${path}?_s=1`));

  it('keep their sessions apart, even if both sign in at the same moment', async () => {
    expect(await inFirst('/visit')).toBe('visit 1');
    expect(await inSecond('/visit')).toBe('visit 1');
    expect(await Promise.all([inFirst('/login'), inSecond('/login')])).toEqual(['signed in', 'signed in']);
    expect(await inFirst('/visit')).toBe('visit 2');
    expect(await inFirst('/visit')).toBe('visit 3');
    expect(await inSecond('/visits')).toBe('visits 1');
    const cookies = await user.cookies();
    expect(cookies.map(({ name }) => name).toSorted()).toEqual(['__Host-sid', '__Host-sid.1']);
    for (const cookie of cookies) expect(cookie).toMatchObject({ httpOnly: true, secure: true, path: '/' });
  });

  it('sign out one by one', async () => {
    await Promise.all([inFirst('/visit'), inSecond('/visit')]);
    await inSecond('/logout');
    expect((await user.cookies()).map(({ name }) => name)).toEqual(['__Host-sid']);
    expect(await inSecond('/visits')).toBe('visits 0');
    expect(await inFirst('/visits')).toBe('visits 1');
    await inFirst('/logout');
    expect(await user.cookies()).toEqual([]);
  });
});
