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
    await tab.goto('/#room');
    await tab.getByText(/^(No session yet\.|Alive:)/).waitFor();
    await tab.getByRole('button', { name: 'Let it run out' }).waitFor();
    return tab;
  }

  const press = (name: string, tab = page) => tab.getByRole('button', { name, exact: true }).click();
  const shows = (text: string | RegExp, tab = page) => tab.getByText(text).waitFor();
  const cart = (tab = page) => tab.locator('#items > li').allInnerTexts();
  const field = (name: string) => page.locator(`#fields dt:text-is("${name}") + dd`);

  async function add(name: string): Promise<void> {
    const before = await cart();
    await page.getByLabel('What to add').fill(name);
    await press('Add');
    await eventually(async () => expect(await cart()).toEqual([...before, name]));
  }

  async function signIn(name: 'ann' | 'bob', tab = page): Promise<void> {
    await press(`Sign in as ${name}`, tab);
    await shows(`Signed in as ${name}`, tab);
  }

  async function anotherBrowser(): Promise<{ tab: Page; close: () => Promise<void> }> {
    const other = await browser.newContext({ baseURL: demo.origin });
    return { tab: await newTab(other), close: () => other.close() };
  }

  it('starts no session for a visitor who only reads the page', async () => {
    expect(await page.innerText('#id')).toBe('none');
    expect(await page.innerText('#rest')).toBe('–');
    expect(await cart()).toEqual([]);
    expect(await user.cookies()).toEqual([]);
  });

  it('shows the cart, and what Redis holds of the session that the first item starts', async () => {
    await press('Add a lantern');
    // Two requests without a session would start one each.
    await eventually(async () => expect(await cart()).toEqual(['lantern']));
    await add('apple');
    expect(await page.innerText('#count')).toBe('2 items');
    expect(await page.innerText('#rest')).toMatch(/^(30:00|29:5\d)$/);
    await page.getByText('live', { exact: true }).waitFor();
    await eventually(async () => expect(await field('sessionAttr:items').innerText()).toBe('["lantern","apple"]'));
    expect(await page.innerText('#c-state')).toBe('there');
    expect(await page.innerText('#bucket')).toMatch(/^until /);
    await page.locator('#entries strong', { hasText: 'created' }).waitFor();
    await page.locator('#requests > li', { hasText: 'POST /cart' }).first().waitFor();
    expect(await page.locator('#requests > li').first().innerText()).toMatch(/commands?, [\d,]+ µs/);
    await press('Empty the cart');
    await shows('Nothing in it yet.');
    await field('sessionAttr:items').waitFor({ state: 'detached' });
  });

  it('keeps what two requests add at once', async () => {
    await press('Add from two tabs at once');
    await shows('Two requests sent at once, 2 items more in the cart: neither overwrote the other.');
    expect((await cart()).toSorted()).toEqual(['apple of another', 'apple of one tab']);
  });

  it('keeps what two tabs add at once, and shows both in both', async () => {
    await add('pear');
    const other = await newTab();
    await Promise.all([press('Add a lantern'), press('Add a teapot', other)]);
    // The one that was answered last has seen both, and tells the other.
    await eventually(async () => {
      for (const tab of [page, other]) {
        expect((await cart(tab)).toSorted()).toEqual(['lantern', 'pear', 'teapot']);
      }
    });
    expect(await other.innerText('#id')).toBe(await page.innerText('#id'));
  });

  it('shows the rotation of the session at the sign-in with a message, and its end at the sign-out', async () => {
    await add('pear');
    const before = await page.innerText('#id');
    await signIn('ann');
    await shows('Welcome, ann. Your session has a new id and still has your cart.');
    await page.locator('#entries strong', { hasText: 'id-changed' }).waitFor();
    await shows('index SZFeDX');
    expect(await page.innerText('#id')).not.toBe(before);
    expect(await cart()).toEqual(['pear']);
    await press('Sign out');
    await shows('Ended. The application got the event.');
    expect(await cart()).toEqual([]);
    await eventually(async () => expect(await page.innerText('#c-state')).toBe('gone'));
  });

  it('counts down the chosen timeout, and shows the expiry and the mail with the cart', async () => {
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
    await shows('Expired. The application got the event, with the cart.');
    expect(await page.locator('#outbox > li').innerText()).toMatch(
      /To a visitor[^]*You left something in your cart:\s+pear/,
    );
    expect(await page.innerText('#id')).toBe('none');
    await field('ended').waitFor();
  });

  it('tells the timeline of an end, and that nothing was lost', async () => {
    await press('Add a teapot');
    await eventually(async () => expect(await cart()).toEqual(['teapot']));
    await press('Let it run out');
    await shows('Lost: nothing. One mail, with the whole cart.');
    expect(await page.locator('#timeline > li > .head > strong').allInnerTexts()).toEqual([
      'Begun',
      'Expired',
      'Handler',
      'Mail',
    ]);
    expect(await page.locator('#timeline .mail .chips').innerText()).toBe('teapot');
  });

  it('takes an order from the cart, shows its deadline in Redis, and takes it out when the order is paid', async () => {
    await add('pear');
    await press('Order what is in the cart');
    await shows('Waiting for your payment. It is cancelled in');
    expect(await page.innerText('#order-rest')).toMatch(/^0:(30|2\d)$/);
    expect(await page.innerText('#ordered')).toBe('pear');
    expect(await cart()).toEqual([]);
    await eventually(async () => expect(await page.innerText('#d-state')).toBe('waits'));
    expect(await page.innerText('#d-fields')).toContain('order.payment-due');
    // The other tab gets it from the events stream.
    const other = await newTab();
    await other.getByText('Waiting for your payment').waitFor();
    await press('Pay', other);
    await shows('Paid on instance 1. cancel() answered “cancelled”: no handler is ever called.');
    expect(await page.locator('#payment').isHidden()).toBe(true);
    await eventually(async () => expect(await page.innerText('#d-state')).toBe('cancelled'));
  });

  it('lets the row decide about a payment at the last moment, and shows how', async () => {
    await page.getByText('An unpaid order', { exact: true }).click();
    await press('Let it run out');
    await press('Pay at the last moment');
    await shows(/^(Paid|Cancelled) on instance 1\./);
    await shows(/^Lost: nothing\. (The payment came first, and there is no mail|One mail, with the whole order)\.$/);
    const isPaid = (await page.innerText('#order-state')) === 'paid';
    expect(await page.locator('#outbox > li').count()).toBe(isPaid ? 0 : 1);
    await eventually(async () =>
      expect(await page.innerText('#order-note')).toBe(isPaid ? '' : 'Too late: the order is cancelled'),
    );
    expect(errors.splice(0)).toEqual(isPaid ? [] : [expect.stringContaining('status of 409')]);
  });

  it('tells the timeline of an order that nobody pays, and how late its deadline was', async () => {
    await press('Add a teapot');
    await eventually(async () => expect(await cart()).toEqual(['teapot']));
    await page.getByText('An unpaid order', { exact: true }).click();
    await press('Let it run out');
    await shows('Lost: nothing. One mail, with the whole order.');
    expect(await page.locator('#timeline > li > .head > strong').allInnerTexts()).toEqual([
      'Begun',
      'Due',
      'Cancelled',
      'Handler',
      'Mail',
    ]);
    const late = /The deadline was found [\d,]+ ms after its time/;
    for (const place of ['#timeline', '#order-about']) expect(await page.innerText(place)).toMatch(late);
    expect(await page.locator('#outbox > li').innerText()).toMatch(/because nobody has paid it:\s+teapot/);
    await page.locator('#d-entries > li', { hasText: 'deadline' }).waitFor();
    expect(await page.innerText('#d-state')).toBe('has come');
    // Its session goes on.
    await shows('Alive: everything you do restarts the timeout.');
  });

  it('lists the devices of the account, and ends that of another browser, which is then signed out', async () => {
    const { tab, close } = await anotherBrowser();
    try {
      await signIn('bob');
      await signIn('bob', tab);
      await press('Look again');
      await page.locator('#devices > li').nth(1).waitFor();
      const mine = page.locator('#devices > li', { hasText: 'Chromium on Linux, this one' });
      const theirs = page.locator('#devices > li').filter({ hasNotText: 'this one' });
      expect(await mine.innerText()).toMatch(/Created .*, last used .*, ends in (30:00|29:5\d)/);
      await theirs.getByRole('button').click();
      await theirs.waitFor({ state: 'detached' });
      // Its next request.
      await press('Add a lantern', tab);
      await tab.getByRole('button', { name: 'Sign in as bob' }).waitFor();
      await eventually(async () => expect(await cart(tab)).toEqual(['lantern']));
      await shows('Signed in as bob');
      await press('Sign out');
      await shows('Ended. The application got the event.');
    } finally {
      await close();
    }
  });

  it('keeps the theme in the session', async () => {
    await press('Dark theme');
    await page.getByRole('button', { name: 'Light theme' }).waitFor();
    await page.reload();
    await page.getByRole('button', { name: 'Light theme' }).waitFor();
    expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(22, 21, 20)');
  });

  it('shows an error of the application', async () => {
    await page.getByLabel('What to add').fill('   ');
    await press('Add');
    await shows('Enter a text of 1 to 40 characters');
    expect(await cart()).toEqual([]);
    expect(errors.splice(0)).toEqual([expect.stringContaining('status of 400')]);
  });

  it('shows a session that begins after a sign-out, too', async () => {
    await signIn('ann');
    await press('Sign out');
    await shows('Ended. The application got the event.');
    await add('pear');
    await page.getByText('live', { exact: true }).waitFor();
    await eventually(async () => expect(await field('sessionAttr:items').innerText()).toBe('["pear"]'));
  });

  it('shows nothing of another visitor', async () => {
    const { tab, close } = await anotherBrowser();
    try {
      await press('Add a teapot', tab);
      await signIn('bob', tab);
      await press('Sign out', tab);
      await shows('Ended. The application got the event.', tab);
      await add('pear');
      await page.locator('#entries strong', { hasText: 'created' }).waitFor();
      await eventually(async () => expect(await field('sessionAttr:items').innerText()).toBe('["pear"]'));
      expect(await page.locator('#entries > li').count()).toBe(1);
      expect(await page.innerText('#fields')).not.toContain('teapot');
      expect(await page.innerText('#bucket')).not.toContain('bob');
    } finally {
      await close();
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
