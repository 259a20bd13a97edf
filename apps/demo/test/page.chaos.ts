import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { launchChromium } from '@nest-session/test-infrastructure/browser';
import { eventually } from '@nest-session/testing';
import { NpmStart } from './support/npm-start.js';

LeakGuard.install();

// Enough time to build the demo, and for the sweep, which comes once a minute, on a busy machine.
const SLOWLY = { timeout: 180_000 };

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

describe('the page of the demo with two instances, in Chromium', () => {
  let start: NpmStart;
  let origin: string;
  let browser: Browser;
  let user: BrowserContext;
  let page: Page;
  /** Every address that the pages have asked for. */
  const requested: string[] = [];
  const errors: string[] = [];

  beforeAll(async () => {
    start = await NpmStart.run();
    origin = await start.origin();
    browser = await launchChromium();
  }, SLOWLY.timeout);

  afterAll(async () => {
    await browser?.close();
    await start?.stop();
  }, SLOWLY.timeout);

  beforeEach(async () => {
    user = await browser.newContext({ baseURL: origin });
    page = await open(user);
  });

  afterEach(async () => {
    await user.close();
    expect(requested.splice(0).filter((url) => new URL(url).origin !== origin)).toEqual([]);
    expect(errors.splice(0)).toEqual([]);
  });

  async function open(context: BrowserContext): Promise<Page> {
    const tab = await context.newPage();
    tab.on('request', (request) => requested.push(request.url()));
    tab.on('pageerror', (error) => errors.push(String(error)));
    tab.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
    await tab.goto('/#room');
    await tab.getByRole('button', { name: 'Let it run out' }).waitFor();
    return tab;
  }

  const press = (name: string) => page.getByRole('button', { name, exact: true }).click();
  const titles = () => page.locator('#timeline > li > .head > strong').allInnerTexts();
  const timeline = () => page.innerText('#timeline');
  const mails = () => page.locator('#outbox > li').count();

  async function fillCart(): Promise<void> {
    await press('Add a lantern');
    await page.locator('#items', { hasText: 'lantern' }).waitFor();
    await press('Add a teapot');
    await page.locator('#items', { hasText: 'teapot' }).waitFor();
  }

  /** How many milliseconds after its time the deadline was found. */
  async function lateness(): Promise<number> {
    const [, late] = /found ([\d,]+) ms after its time/.exec(await timeline())!;
    return Number(late!.replaceAll(',', ''));
  }

  /** When it came from an instance that was killed. */
  function streamWasCut(): void {
    expect(errors.splice(0).filter((text) => !/net::ERR_/.test(text))).toEqual([]);
  }

  async function nothingIsLost(end: 'cart' | 'order' = 'cart'): Promise<void> {
    await page.getByText(`Lost: nothing. One mail, with the whole ${end}.`).waitFor(SLOWLY);
    expect(await page.locator('#timeline .mail .chips > li').allInnerTexts()).toEqual(['lantern', 'teapot']);
    expect(await mails()).toBe(1);
  }

  it(
    'tells of an instance that is killed in the middle of a handler, and of the mail by another one',
    async () => {
      await fillCart();
      await press('Kill the instance');
      await nothingIsLost();
      expect(await titles()).toEqual(['Begun', 'Expired', 'Handler', 'Killed', 'Handler', 'Mail']);
      const [, killed] = /(Instance \d) is killed/.exec(await timeline())!;
      const callers = [...(await timeline()).matchAll(/(Instance \d) calls the handler, attempt (\d)/g)];
      expect(callers.map(([, instance, attempt]) => [instance === killed, attempt])).toEqual([
        [true, '1'],
        [false, '1'],
      ]);
      await eventually(() => expect(start.output).toMatch(/Instance \d was ended by SIGKILL, and starts again/));
      streamWasCut();
    },
    SLOWLY.timeout,
  );

  it(
    'tells of a handler that throws twice, then succeeds',
    async () => {
      await fillCart();
      await press('Fail twice');
      await nothingIsLost();
      const failed = ['Handler', 'Failed', 'Handler', 'Failed'];
      expect(await titles()).toEqual(['Begun', 'Expired', ...failed, 'Handler', 'Mail']);
    },
    SLOWLY.timeout,
  );

  it(
    'replays by a click the dead letter of a handler that never succeeds',
    async () => {
      await fillCart();
      await press('Fail always');
      await page.getByRole('button', { name: 'Repair the mail server and replay' }).click(SLOWLY);
      await nothingIsLost();
      expect((await titles()).slice(-4)).toEqual(['Dead letter', 'Replayed', 'Handler', 'Mail']);
      expect(await page.locator('#replay').isHidden()).toBe(true);
    },
    SLOWLY.timeout,
  );

  it(
    'finds with a sweep the end that Redis tells nobody',
    async () => {
      await fillCart();
      await press('Switch notifications off');
      await nothingIsLost();
      const told = await titles();
      expect(told.filter((title) => title !== 'Over, unnoticed')).toEqual(['Begun', 'Expired', 'Handler', 'Mail']);
      // Either C was gone for a while and nobody knew, or it went just before the full minute, when the sweep came.
      const at = new Date((await page.getAttribute('#timeline > .expired time', 'datetime'))!);
      expect(told.includes('Over, unnoticed') || at.getUTCSeconds() < 10).toBe(true);
    },
    SLOWLY.timeout,
  );

  it(
    'answers while Redis is frozen what needs no session, and the rest with an error',
    async () => {
      await fillCart();
      await press('Freeze Redis');
      await page.getByText('Lost: nothing. The same session, with the same cart.').waitFor(SLOWLY);
      expect(await timeline()).toMatch(/needs no session: 200 after \d{1,3} ms/);
      expect(await timeline()).toMatch(/for the session: 503 after \d+ ms/);
      expect(await titles()).toContain('Frozen');
      const seen = errors.splice(0);
      expect(seen).not.toEqual([]);
      expect(seen.filter((text) => !/status of 503/.test(text))).toEqual([]);
    },
    SLOWLY.timeout,
  );

  it(
    'tells of an instance that is killed before the mail about an order, and of the mail by another one',
    async () => {
      await fillCart();
      await page.getByText('An unpaid order', { exact: true }).click();
      await press('Kill the instance');
      await nothingIsLost('order');
      expect(await titles()).toEqual(['Begun', 'Due', 'Cancelled', 'Handler', 'Killed', 'Handler', 'Mail']);
      const [, killed] = /(Instance \d) is killed/.exec(await timeline())!;
      const callers = [...(await timeline()).matchAll(/(Instance \d) is about to write the mail/g)];
      expect(callers.map(([, instance]) => instance === killed)).toEqual([true, false]);
      streamWasCut();
    },
    SLOWLY.timeout,
  );

  it(
    'cancels an order that was due while both instances were down, as soon as one is back',
    async () => {
      const instances = await start.instances(2);
      await fillCart();
      await page.getByText('An unpaid order', { exact: true }).click();
      await press('Let it run out');
      await page.getByText('Waiting for your payment').waitFor();
      for (const pid of instances) process.kill(pid, 'SIGKILL');
      await nothingIsLost('order');
      // They start again after ten seconds, and it was due after four.
      expect(await lateness()).toBeGreaterThan(5000);
      streamWasCut();
    },
    SLOWLY.timeout,
  );

  it(
    'cancels an order that was due while Redis was frozen, as soon as it replies',
    async () => {
      await fillCart();
      await page.getByText('An unpaid order', { exact: true }).click();
      await press('Freeze Redis');
      await nothingIsLost('order');
      expect(await titles()).toEqual(['Begun', 'Frozen', 'Due', 'Cancelled', 'Handler', 'Mail']);
      expect(await lateness()).toBeGreaterThan(500);
      expect(errors.splice(0).filter((text) => !/status of 503/.test(text))).toEqual([]);
    },
    SLOWLY.timeout,
  );

  it(
    'cancels an order in time while notifications are switched off',
    async () => {
      await fillCart();
      await page.getByText('An unpaid order', { exact: true }).click();
      await press('Switch notifications off');
      await nothingIsLost('order');
      expect(await titles()).toEqual(['Begun', 'Due', 'Cancelled', 'Handler', 'Mail']);
      expect(await lateness()).toBeLessThan(2000);
    },
    SLOWLY.timeout,
  );

  it.each([
    { theme: 'light', width: 1280 },
    { theme: 'dark', width: 1280 },
    { theme: 'light', width: 360 },
    { theme: 'dark', width: 360 },
  ] as const)(
    'has no violation that axe-core finds, $theme and $width pixels wide',
    async ({ theme, width }) => {
      const context = await browser.newContext({
        baseURL: origin,
        colorScheme: theme,
        viewport: { width, height: 800 },
        reducedMotion: 'reduce',
      });
      try {
        page = await open(context);
        await violations('before the first request');
        await page.getByRole('tab', { name: 'Side by side' }).click();
        await press('Two tabs add at once');
        await page.locator('#two-tabs-nest-session[data-verdict=good]').waitFor(SLOWLY);
        await violations('side by side');
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
        await page.getByRole('tab', { name: 'Shop and engine room' }).click();
        await fillCart();
        await press('Sign in as ann');
        await page.locator('#devices > li').first().waitFor();
        await page.locator('#fields', { hasText: 'teapot' }).waitFor();
        await violations('signed in');
        await press('Order what is in the cart');
        await page.locator('#d-state', { hasText: 'waits' }).waitFor();
        await violations('with an order');
        await press('Pay');
        await page.getByText('Paid on instance').waitFor();
        await fillCart();
        await press('Let it run out');
        await nothingIsLost();
        await violations('after the end');
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
      } finally {
        await context.close();
      }
    },
    SLOWLY.timeout,
  );

  /** Outside of the policy of the page, which would not let the text of axe-core run as a script of its own. */
  async function violations(when: string): Promise<void> {
    const found = (await page.evaluate(`${AXE}; axe.run()`)) as AxeResults;
    const shown = found.violations.map(({ id, nodes }) => [when, id, ...nodes.map(({ html }) => html)]);
    expect(found.passes.length).toBeGreaterThan(20);
    expect(shown).toEqual([]);
  }

  it('is used with the keyboard alone', async () => {
    const focused = () => page.evaluate('document.activeElement.id || document.activeElement.textContent.trim()');
    const reach = async (name: string) => {
      for (let i = 0; i < 60 && (await focused()) !== name; i++) await page.keyboard.press('Tab');
      expect(await focused()).toBe(name);
    };
    await page.goto('/');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Skip to “Make it fail”');
    await reach('tab-compare');
    await reach('run-two-tabs');
    await page.keyboard.press('Enter');
    await page.locator('#two-tabs-nest-session[data-verdict=good]').waitFor(SLOWLY);
    expect(await focused()).toBe('run-two-tabs');
    await page.keyboard.press('Shift+Tab');
    expect(await focused()).toBe('tab-compare');
    await page.keyboard.press('ArrowRight');
    expect(await focused()).toBe('tab-room');
    await reach('login-ann');
    await page.keyboard.press('Enter');
    // The button is gone: the focus goes to the one that takes it back.
    await eventually(async () => expect(await focused()).toBe('logout'));
    await reach('Add a lantern');
    await page.keyboard.press('Enter');
    await page.locator('#items', { hasText: 'lantern' }).waitFor();
    expect(await focused()).toBe('Add a lantern');
    await reach('place');
    await page.keyboard.press('Enter');
    await eventually(async () => expect(await focused()).toBe('pay'));
    await page.keyboard.press('Enter');
    await eventually(async () => expect(await focused()).toBe('order-title'));
    await reach('fault-none');
    await page.keyboard.press('Enter');
    await page.getByText('Lost: nothing. One mail, with the whole cart.').waitFor(SLOWLY);
  });
});

describe('the page of the demo without Redis, in Chromium', () => {
  it(
    'says why the engine room is empty, and shows the mails about a cancelled order and an abandoned cart all the same',
    async () => {
      const start = await NpmStart.run({ env: { REDIS_SERVER: '/nowhere/redis-server' } });
      let browser: Browser | undefined;
      try {
        const origin = await start.origin();
        browser = await launchChromium();
        const page = await browser.newPage();
        await page.goto(`${origin}/#room`);
        await page.getByText('Empty: the demo found no Redis to start').waitFor();
        expect(await page.locator('#faults button:disabled').count()).toBe(6);
        expect(await page.locator('#scenarios button:disabled').count()).toBe(7);
        await page.getByRole('button', { name: 'Add a lantern' }).click();
        // Before the answer there is no session yet: the next request would be given another one.
        await page.locator('#items', { hasText: 'lantern' }).waitFor();
        await page.getByRole('button', { name: 'Order what is in the cart' }).click();
        await page.locator('#ordered', { hasText: 'lantern' }).waitFor();
        await page.getByRole('button', { name: 'Add a teapot' }).click();
        await page.locator('#items', { hasText: 'teapot' }).waitFor();
        await page.getByText('10 s', { exact: true }).click();
        for (const [text, item] of [['left something', 'teapot'] as const, ['was cancelled', 'lantern'] as const]) {
          await page.locator('#outbox > li', { hasText: text }).filter({ hasText: item }).waitFor(SLOWLY);
        }
      } finally {
        await browser?.close();
        await start.stop();
      }
    },
    SLOWLY.timeout,
  );
});

describe('npm start', () => {
  it(
    'leaves no process and no file after Ctrl-C, also while an instance is about to start again',
    async () => {
      const start = await NpmStart.run();
      try {
        await start.origin();
        const instances = await start.instances(2);
        // npm and start.mjs, Redis, the parent of the instances, two of each side.
        await eventually(async () => expect((await start.processes()).length).toBeGreaterThanOrEqual(8));
        process.kill(instances[0]!, 'SIGKILL');
        await eventually(() => expect(start.output).toContain('starts again'));
        start.ctrlC();
        expect(await start.exit).toEqual([0, null]);
        await eventually(async () => expect(await start.processes()).toEqual([]));
        expect(await start.leftovers()).toEqual([]);
      } finally {
        await start.stop();
      }
    },
    SLOWLY.timeout,
  );
});
