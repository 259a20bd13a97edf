import { LeakGuard } from '@nest-session/test-infrastructure';
import { launchChromium, textAt } from '@nest-session/test-infrastructure/browser';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { Shop } from './shop.app.js';

LeakGuard.install();

let browser: Browser;
let shop: Shop;
let user: BrowserContext;
let tab: Page;
beforeAll(async () => {
  browser = await launchChromium();
  // So that the cookie does come with the requests of other sites.
  shop = await Shop.start({ cookie: { sameSite: 'none', secure: true } });
}, 120_000);
beforeEach(async () => {
  user = await browser.newContext();
  tab = await user.newPage();
});
afterEach(() => user.close());
afterAll(async () => {
  await shop?.stop();
  await browser?.close();
});

/** Submits the form of the page, and resolves to the text of the next page. */
async function submit(): Promise<string> {
  const response = tab.waitForResponse((each) => each.request().method() === 'POST');
  await tab.evaluate('document.forms[0].submit()');
  await response;
  await tab.waitForLoadState();
  return tab.innerText('body');
}

function tokenOfForm(): Promise<string> {
  return tab.evaluate<string>('document.forms[0]._csrf.value');
}

describe('in Chromium, CsrfGuard', () => {
  it('accepts its own form, even from a page that hides its origin', async () => {
    await tab.goto(shop.https('shop.test', '/transfer'));
    expect(await submit()).toBe('visit 1');
    await tab.goto(shop.https('shop.test', '/transfer'));
    expect(await submit()).toBe('visit 2');
  });

  it('accepts the own fetch() with the token in a header, and refuses it without', async () => {
    await tab.goto(shop.https('shop.test', '/transfer'));
    const fetched = (headers: string) =>
      tab.evaluate<string>(`fetch('/transfer', { method: 'POST', headers: ${headers} }).then((each) => each.text())`);
    expect(await fetched("{ 'X-CSRF-Token': document.forms[0]._csrf.value }")).toBe('visit 1');
    expect(await fetched('{}')).toContain('The CSRF token is missing');
  });

  it.each(['other.test', 'evil.shop.test'])('refuses a form of %s, even with the right token', async (host) => {
    await tab.goto(shop.https('shop.test', '/transfer'));
    const token = await tokenOfForm();
    const target = encodeURIComponent(shop.https('shop.test', '/transfer'));
    await tab.goto(shop.https(host, `/door/post?to=${target}&token=${token}`));
    expect(await submit()).toContain('A page of another origin sent this request');
    expect(await textAt(tab, shop.https('shop.test', '/visits'))).toBe('visits 0');
  });

  it('refuses a form in a sandboxed frame of another page, whose origin is null', async () => {
    await tab.goto(shop.https('shop.test', '/transfer'));
    const token = await tokenOfForm();
    await tab.goto(shop.https('other.test', '/blank'));
    const form = `<form method=post action=${shop.https('shop.test', '/transfer')}><input name=_csrf value=${token}></form>`;
    const script = '<script>document.forms[0].submit()</script>';
    const frame = { sandbox: 'allow-scripts allow-forms', srcdoc: form + script };
    await tab.evaluate(
      `document.body.append(Object.assign(document.createElement('iframe'), ${JSON.stringify(frame)}))`,
    );
    await tab.frameLocator('iframe').getByText('A page of another origin sent this request').waitFor();
    expect(await textAt(tab, shop.https('shop.test', '/visits'))).toBe('visits 0');
  });
});
