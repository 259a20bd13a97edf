import type { Browser, BrowserContext, Page } from 'playwright-core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { launchChromium } from '@nest-session/test-infrastructure/browser';
import { DemoApplication } from './support/demo.application.js';

LeakGuard.install();

describe('the page of the demo, in Chromium', () => {
  let demo: DemoApplication;
  let browser: Browser;
  let user: BrowserContext;
  let page: Page;
  /** What the pages have thrown, and what Chromium has reported of them, such as violations of the policy. */
  const errors: string[] = [];

  beforeAll(async () => {
    demo = await DemoApplication.start();
    browser = await launchChromium();
  }, 120_000);

  afterAll(async () => {
    await browser?.close();
    await demo?.stop();
  });

  beforeEach(async () => {
    user = await browser.newContext({ baseURL: demo.origin });
    page = await newTab();
  });

  afterEach(async () => {
    await user.close();
    expect(errors.splice(0)).toEqual([]);
  });

  async function newTab(visitor = user): Promise<Page> {
    const tab = await visitor.newPage();
    tab.on('pageerror', (error) => errors.push(String(error)));
    tab.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
    await tab.goto('/');
    await tab.getByText(/^(No session yet|Alive):/).waitFor();
    return tab;
  }

  const press = (name: string) => page.getByRole('button', { name, exact: true }).click();
  const shows = (text: string) => page.getByText(text).waitFor();
  const cart = (tab = page) => tab.locator('#items > li').allInnerTexts();

  async function add(name: string): Promise<void> {
    const before = await cart();
    await page.getByLabel('What to add').fill(name);
    await press('Add');
    await eventually(async () => expect(await cart()).toEqual([...before, name]));
  }

  async function signIn(name: string): Promise<void> {
    await page.getByLabel('Your name').fill(name);
    await press('Sign in');
    await shows(`Signed in as ${name}`);
  }

  const event = (type: string) => page.locator(`#events > li.${type}`);

  it('starts no session for a visitor who only reads the page', async () => {
    expect(await page.innerText('#id')).toBe('none');
    expect(await page.innerText('#rest')).toBe('–');
    expect(await cart()).toEqual([]);
    expect(await user.cookies()).toEqual([]);
  });

  it('shows the cart, the countdown and the event of the session that the first item starts', async () => {
    await add('pear');
    await add('apple');
    expect(await page.innerText('#count')).toBe('2 items');
    expect(await page.innerText('#rest')).toMatch(/^(30:00|29:5\d)$/);
    await event('created').waitFor();
    await page.getByText('live', { exact: true }).waitFor();
    expect(await event('created').locator('code').innerText()).toBe(await page.innerText('#id'));
    await press('Empty the cart');
    await shows('Nothing in it yet.');
  });

  it('keeps all ten items that it adds at once', async () => {
    await press('Add ten at once');
    await shows('Ten requests sent at once, 10 items more in the cart.');
    expect((await cart()).toSorted()).toEqual(Array.from({ length: 10 }, (_, i) => `apple ${i + 1}`).toSorted());
  });

  it('shows the rotation of the session at the sign-in, and its end at the sign-out', async () => {
    await add('pear');
    const before = await page.innerText('#id');
    await signIn('ann');
    await event('id-changed').waitFor();
    expect(await page.innerText('#id')).not.toBe(before);
    expect(await cart()).toEqual(['pear']);
    await press('Sign out');
    await shows('Signed out. The application was told.');
    expect(await event('deleted').innerText()).toMatch(/The session of ann was ended\. Its cart held:\s+pear/);
    expect(await cart()).toEqual([]);
  });

  it('counts down the chosen timeout, and shows the expiry with the cart', async () => {
    await add('pear');
    await page.getByText('10 s', { exact: true }).click();
    await shows('of 0:10');
    await eventually(async () => expect(await page.innerText('#rest')).toMatch(/^0:0\d$/));
    // With the cookie of the page, but outside of it: the page learns of the end from the event stream alone.
    const body = JSON.stringify(JSON.stringify({ maxInactiveInterval: 1 }));
    await page.evaluate(`fetch('/csrf').then((response) => response.json()).then(({ token }) => {
      const headers = { 'Content-Type': 'application/json', 'X-CSRF-Token': token };
      return fetch('/session', { method: 'PUT', body: ${body}, headers });
    })`);
    await shows('Expired. The application was told, with the cart.');
    expect(await event('expired').innerText()).toMatch(/A visitor’s session ran out\. Its cart held:\s+pear/);
    expect(await page.innerText('#id')).toBe('none');
  });

  it('shows in one tab the changes of another', async () => {
    const other = await newTab();
    await add('pear');
    await eventually(async () => expect(await cart(other)).toEqual(['pear']));
    expect(await other.innerText('#id')).toBe(await page.innerText('#id'));
  });

  it('shows an error of the application', async () => {
    await page.getByLabel('What to add').fill('   ');
    await press('Add');
    await shows('A text of 1 to 40 characters is needed');
    expect(await cart()).toEqual([]);
    expect(errors.splice(0)).toEqual([expect.stringContaining('status of 400')]);
  });

  it('shows the events of the session after a sign-out, too', async () => {
    await signIn('ann');
    await press('Sign out');
    await shows('Signed out. The application was told.');
    await add('pear');
    await page.getByText('live', { exact: true }).waitFor();
    const id = await page.innerText('#id');
    await event('created').filter({ hasText: id }).waitFor();
  });

  it('notices that the session ended while no stream was open', async () => {
    await add('pear');
    await user.route('**/events', async (route) => {
      await user.clearCookies();
      await route.fulfill({ status: 404 });
    });
    await page.reload();
    await shows('No session yet: it begins with what you do first.');
    expect(await page.innerText('#stream')).toBe('idle');
    expect(errors.splice(0)).toEqual([expect.stringContaining('status of 404')]);
  });

  it('shows nothing of another visitor', async () => {
    const other = await browser.newContext({ baseURL: demo.origin });
    try {
      const theirs = await newTab(other);
      await add('pear');
      await theirs.getByLabel('Your name').fill('mallory');
      await theirs.getByRole('button', { name: 'Sign in', exact: true }).click();
      await theirs.getByText('Signed in as mallory').waitFor();
      await theirs.getByRole('button', { name: 'Sign out', exact: true }).click();
      await theirs.getByText('Signed out. The application was told.').waitFor();
      await signIn('ann');
      await event('id-changed').waitFor();
      const types = await page.locator('#events .type').allInnerTexts();
      expect(types.toSorted()).toEqual(['created', 'id-changed']);
      expect(await page.innerText('body')).not.toContain('mallory');
    } finally {
      await other.close();
    }
  });

  it('runs no inline script and applies no inline style', async () => {
    await page.evaluate(`document.body.insertAdjacentHTML('beforeend', '<p id="bad" style="color: rgb(1, 2, 3)">bad</p>');
      document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.isBad = true' }));`);
    expect(await page.evaluate('window.isBad')).toBeUndefined();
    expect(await page.evaluate("getComputedStyle(document.getElementById('bad')).color")).not.toBe('rgb(1, 2, 3)');
    const reports = errors.splice(0);
    expect(reports).toHaveLength(2);
    expect(reports.join()).toMatch(/style-src 'self'[^]*script-src 'self'/);
  });

  it('is not in a frame of another page', async () => {
    const tab = await user.newPage();
    await tab.setContent(`<iframe src="${demo.origin}"></iframe>`);
    await eventually(() => expect(tab.frames()[1]!.url()).toBe('chrome-error://chromewebdata/'));
  });

  it('does not open under a name that somebody else has let resolve to this machine', async () => {
    const { port } = new URL(demo.origin);
    const tab = await user.newPage();
    for (const path of ['/', '/session', '/events']) {
      const response = await tab.goto(`http://rebound.example:${port}${path}`);
      expect(response?.status()).toBe(421);
      expect(await tab.innerText('body')).toContain(`The Host header is \\"rebound.example:${port}\\"`);
    }
    expect(await user.cookies()).toEqual([]);
  });
});
