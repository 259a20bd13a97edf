import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { CallHandler, ExecutionContext, INestApplication, NestInterceptor } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { DeadlineModule, Deadlines } from '@nest-session/deadlines';
import { RedisSessionModule, SessionEventGroups } from '@nest-session/redis';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { launchChromium } from '@nest-session/test-infrastructure/browser';
import { eventually, HttpAgent, RedisServer } from '@nest-session/testing';
import type { AxeResults } from 'axe-core';
import type { Browser, BrowserContext, Page, Route } from 'playwright-core';
import { map } from 'rxjs';
import type { Session } from '@nest-session/core';
import type { SessionAdminModuleOptions } from '../../src/index.js';
import { AdminApp, type AdminAppOptions, closeApps, PATH, PLATFORMS } from '../support/admin.app.js';
import { FailingHandlers, paymentDue } from '../support/failing.js';

LeakGuard.install();

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const HTML = '<img src=x onerror="document.title=1">\u202Ebob';

let redis: RedisServer;
let browser: Browser;
let contexts: BrowserContext[] = [];
/** What the pages have thrown, and what Chromium has reported of them, such as violations of the policy. */
const errors: string[] = [];
/** Every address that the pages have asked for. */
const requested: string[] = [];
let namespaces = 0;

beforeAll(async () => {
  redis = await RedisServer.start();
  browser = await launchChromium();
}, 120_000);

afterAll(async () => {
  await browser?.close();
  await redis?.stop();
});

afterEach(async () => {
  await Promise.all(contexts.map((each) => each.close()));
  contexts = [];
  await closeApps();
  expect(errors.splice(0)).toEqual([]);
  const origins = new Set(requested.splice(0).map((url) => new URL(url).origin));
  expect(origins.size).toBeLessThanOrEqual(1);
});

/** A shop whose handlers fail at once. */
function start(admin: Partial<SessionAdminModuleOptions> = {}, options: AdminAppOptions = {}): Promise<AdminApp> {
  const namespace = `page-${namespaces++}`;
  const address = { url: redis.url, namespace, events: { attempts: 1 } };
  return AdminApp.start({
    store: [RedisSessionModule.forRoot(address)],
    imports: [
      DeadlineModule.forRoot(),
      RedisDeadlineModule.forRoot({ ...address, namespace: `${namespace}-deadlines` }),
    ],
    providers: [FailingHandlers],
    admin,
    ...options,
  });
}

interface Opening {
  readonly hash?: string;
  readonly width?: number;
  readonly theme?: 'light' | 'dark';
  readonly prefix?: string;
}

/** The page, of an administrator who has signed in. */
async function open(
  app: AdminApp,
  { hash = '', width = 1280, theme = 'light', prefix = '' }: Opening = {},
): Promise<Page> {
  const context = await browser.newContext({
    baseURL: app.origin,
    viewport: { width, height: 800 },
    colorScheme: theme,
  });
  contexts.push(context);
  await context.request.post(`${prefix}/sign-in/ada`);
  const page = await context.newPage();
  page.on('request', (request) => requested.push(request.url()));
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  await page.goto(`${prefix}${PATH}${hash}`);
  await page.locator('body[data-ready]').waitFor();
  return page;
}

const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true }).first().click();
const confirm = (page: Page, name: string) =>
  page.getByRole('dialog').getByRole('button', { name, exact: true }).click();
const status = (page: Page) => page.getByRole('status');

async function search(page: Page, name: string): Promise<void> {
  await page.getByRole('searchbox').fill(name);
  await page.keyboard.press('Enter');
}

describe.each(PLATFORMS)('the page on %s, in Chromium', (platform) => {
  it('finds the sessions of a user, shows one in words, and ends it', async () => {
    const app = await start({}, { platform });
    const bob = await app.signIn('bob');
    await bob.agent.post('/cart/secret-of-bob');
    const other = await app.signIn('bob');
    const page = await open(app);
    await page.getByText('You are ada').waitFor();
    await search(page, 'bob');
    await page.getByRole('heading', { name: '2 sessions of bob' }).waitFor();
    const card = page.locator(`[data-id="${bob.id}"]`);
    expect(await card.innerText()).toMatch(
      /Chrome on Linux[^]*Signed in\s+(now|\d+ seconds? ago)[^]*in (29|30) minutes/,
    );
    await card.getByText('Details').click();
    await card.getByText(bob.id).waitFor();
    expect(await card.innerText()).toMatch(/cart\s+21 bytes/);
    expect(await page.innerText('body')).not.toContain('secret-of-bob');

    await card.getByRole('button').click();
    await page.getByRole('dialog').getByText('Whoever uses it has to sign in again.').waitFor();
    await confirm(page, 'Keep');
    expect(app.events).toEqual([]);
    await card.getByRole('button').click();
    await confirm(page, 'End it');
    await page.getByRole('heading', { name: '1 session of bob' }).waitFor();
    expect(await status(page).innerText()).toBe('The session has ended.');
    expect((await bob.agent.get('/cart')).json()).toEqual({ cart: null });
    expect(await page.locator('#sessions > li').count()).toBe(1);
    await page.locator(`[data-id="${other.id}"]`).waitFor();
  });

  it('ends all sessions of a user', async () => {
    const app = await start({}, { platform });
    for (let i = 0; i < 3; i++) await app.signIn('bob');
    const page = await open(app, { hash: '#users?username=bob' });
    await press(page, 'End all');
    await page.getByRole('heading', { name: 'End all sessions of bob?' }).waitFor();
    await confirm(page, 'End all');
    await page.getByRole('heading', { name: 'No live session of bob' }).waitFor();
    expect(await status(page).innerText()).toBe('3 sessions ended.');
    expect(app.events).toMatchObject([{ action: 'end-sessions', by: 'ada', principalName: 'bob' }]);
  });

  it('works where the application has a prefix and wraps all responses', async () => {
    const wrap: NestInterceptor = {
      intercept: (_: ExecutionContext, next: CallHandler) => next.handle().pipe(map((data: unknown) => ({ data }))),
    };
    const configure: AdminAppOptions['configure'] = (nest) => nest.setGlobalPrefix('api').useGlobalInterceptors(wrap);
    const app = await start({}, { platform, configure });
    const agent = app.agent();
    await agent.post('/api/sign-in/bob');
    const page = await open(app, { prefix: '/api', hash: '#users?username=bob' });
    await page.getByRole('heading', { name: '1 session of bob' }).waitFor();
    await press(page, 'End all');
    await confirm(page, 'End all');
    await page.getByRole('heading', { name: 'No live session of bob' }).waitFor();
  });
});

describe('the page, in Chromium', () => {
  it('finds a session by its id', async () => {
    const app = await start({ values: (_, value) => value });
    const bob = await app.signIn('bob');
    await bob.agent.post(`/cart/${encodeURIComponent('<b>apple</b>')}`);
    const page = await open(app);
    await page.getByLabel('Search by').selectOption('Session id');
    await page.getByLabel('Session id', { exact: true }).fill(bob.id);
    await press(page, 'Search');
    await page.getByRole('heading', { name: '1 session' }).waitFor();
    await page.locator('pre', { hasText: '"<b>apple</b>"' }).waitFor();
    await search(page, 'x');
    await page.getByRole('alert').getByText('No live session has this id').waitFor();
    expect(errors.splice(0)).toEqual([expect.stringContaining('status of 404')]);
  });

  it('finds a user by what people know, also where several are meant', async () => {
    const people = new Map([
      ['1', 'bob@example.com'],
      ['2', 'bobby@example.com'],
    ]);
    const find = (typed: string) => [...people].flatMap(([id, mail]) => (mail.startsWith(typed) ? [id] : []));
    const app = await start({ users: { find, label: (id) => people.get(id) } });
    await app.signIn('1');
    await app.signIn('1');
    const page = await open(app);
    await search(page, 'bob@');
    await page.getByRole('heading', { name: '2 sessions of bob@example.com (1)' }).waitFor();
    await search(page, 'bob');
    await page.getByRole('heading', { name: '2 users found by bob' }).waitFor();
    await page.getByRole('link', { name: 'bob@example.com (1)' }).click();
    await page.getByRole('heading', { name: '2 sessions of bob@example.com (1)' }).waitFor();
    await search(page, 'eve');
    await page.getByRole('heading', { name: 'Nobody found by eve' }).waitFor();
    await search(page, 'bob@');
    await press(page, 'End all');
    await confirm(page, 'End all');
    await page.getByRole('heading', { name: 'No live session of bob@example.com (1)' }).waitFor();
  });

  it('finds sessions by an index, says whose each is, and ends one', async () => {
    const indexes = { item: (session: Pick<Session, 'getAttribute'>) => session.getAttribute<string[]>('cart')?.[0] };
    const app = await start({}, { session: { indexes } });
    for (const name of ['bob', 'eve']) await (await app.signIn(name)).agent.post('/cart/apple');
    const page = await open(app);
    await page.getByLabel('Search by').selectOption('item');
    await search(page, 'apple');
    await page.getByRole('heading', { name: '2 sessions of item apple' }).waitFor();
    const ofBob = page.locator('#sessions > li', { hasText: 'bob' });
    await ofBob.getByRole('button', { name: /^End this session/ }).click();
    await confirm(page, 'End it');
    await page.getByRole('heading', { name: '1 session of item apple' }).waitFor();
    expect(await page.getByRole('button', { name: 'End all' }).isVisible()).toBe(false);
    await page.locator('#sessions > li', { hasText: 'eve' }).waitFor();
  });

  it('shows twenty sessions of a user at once, and cards on a telephone', async () => {
    const app = await start();
    for (let i = 0; i < 20; i++) await app.signIn('bob');
    const heights = async (width: number) => {
      const page = await open(app, { hash: '#users?username=bob', width });
      await page.locator('#sessions > li').nth(19).waitFor();
      const boxes = await page.locator('#sessions > li').evaluateAll((all) => all.map((each) => each.clientHeight));
      return Math.max(...boxes);
    };
    expect(await heights(1280)).toBeLessThan(70);
    expect(await heights(360)).toBeGreaterThan(150);
  });

  it('looks again after a replay, and shows what has failed once more', async () => {
    const app = await start();
    await app.signIn('bob');
    const page = await open(app, { hash: '#letters' });
    const ofBob = page.locator('#letter-list > li', { hasText: 'bob' });
    await eventually(async () => {
      await press(page, 'Refresh');
      await ofBob.waitFor({ timeout: 1000 });
    });
    await ofBob.getByRole('button', { name: /^Replay/ }).click();
    await status(page).getByText('The application handles it again.').waitFor();
    await ofBob.waitFor({ state: 'detached' });
    await ofBob.waitFor();
  });

  it('shows which session is bound to its browser, and since when', async () => {
    const configure = (nest: INestApplication) => void (nest as NestExpressApplication).set('trust proxy', true);
    const app = await start({}, { session: { deviceBound: true }, configure });
    const bob = await HttpAgent.for(app.nest, { bindsSessions: true });
    await bob.post('/sign-in/bob');
    await bob.get('/cart');
    await app.signIn('bob');
    const page = await open(app, { hash: '#users?username=bob' });
    const cards = page.locator('#sessions > li');
    await cards.nth(1).waitFor();
    expect(await cards.getByText('bound', { exact: true }).count()).toBe(1);
    for (const i of [0, 1]) await cards.nth(i).getByText('Details').click();
    await cards.nth(0).getByText(/^no$/).waitFor();
    await cards
      .nth(1)
      .getByText(/^since .* by ES256$/)
      .waitFor();
  });

  it('shows more of many sessions', async () => {
    const app = await start();
    for (let i = 0; i < 55; i++) await app.signIn('bob');
    const page = await open(app, { hash: '#users?username=bob' });
    await page.getByRole('heading', { name: '55 sessions of bob' }).waitFor();
    expect(await page.locator('#sessions > li').count()).toBe(50);
    await press(page, 'Show more sessions');
    await eventually(async () => expect(await page.locator('#sessions > li').count()).toBe(55));
    await page.getByRole('button', { name: 'Show more sessions' }).waitFor({ state: 'hidden' });
  });

  it('shows more once, however fast one presses the button', async () => {
    const app = await start();
    for (let i = 0; i < 55; i++) await app.signIn('bob');
    const page = await open(app, { hash: '#users?username=bob' });
    await page.getByRole('button', { name: 'Show more sessions' }).dblclick();
    await eventually(async () => expect(await page.locator('#sessions > li').count()).toBeGreaterThan(50));
    expect(requested.filter((url) => url.includes('offset=50'))).toHaveLength(1);
  });

  it('says when the own session is to end', async () => {
    const app = await start();
    const page = await open(app, { hash: '#users?username=ada' });
    await page.getByText('your own').waitFor();
    await press(page, /^End this session/);
    await page.getByRole('dialog').getByText('This is your own session').waitFor();
    await confirm(page, 'End it');
    await page.getByRole('alert').getByText('You are not signed in any more. Load the page again.').waitFor();
    expect(errors.splice(0)).toEqual([expect.stringContaining('status of 401')]);
  });

  it('replays and discards dead letters', async () => {
    const app = await start();
    await app.signIn('bob');
    await app.signIn('eve');
    const page = await open(app, { hash: '#letters' });
    await eventually(async () => {
      await press(page, 'Refresh');
      await page.locator('#letter-list > li').nth(2).waitFor({ timeout: 1000 });
    });
    const ofBob = page.locator('#letter-list > li', { hasText: 'bob' });
    expect(await ofBob.innerText()).toMatch(/A user signed in[^]*<b>The mail server is down<\/b>[^]*Attempts\s+1/);
    const handlers = app.nest.get(FailingHandlers);
    handlers.isFailing = false;
    await ofBob.getByRole('button', { name: /^Replay/ }).click();
    await status(page).getByText('The application handles it again.').waitFor();
    await eventually(() => expect(handlers.handled).toEqual(['sign-in of bob']));
    await page
      .locator('#letter-list > li', { hasText: 'eve' })
      .getByRole('button', { name: /^Discard/ })
      .click();
    await confirm(page, 'Discard it');
    await status(page).getByText('The dead letter is discarded.').waitFor();
    await press(page, 'Replay all');
    await confirm(page, 'Replay all');
    await page.getByText('There are none.').waitFor();
    await eventually(() => expect(handlers.handled).toEqual(['sign-in of bob', 'sign-in of ada']));
  });

  describe.each([
    { view: 'letters', read: 'dead-letters', button: /^Discard:/, yes: 'Discard it' },
    { view: 'deadlines', read: 'deadlines?name=order.payment-due', button: /^Cancel it:/, yes: 'Cancel it' },
    { view: 'groups', read: 'groups', button: /^Remove:/, yes: 'Remove it' },
  ])('what is gone from the $view', ({ view, read, button, yes }) => {
    it.each([
      { late: 'while one is asked', isEarlier: true },
      { late: 'after the action', isEarlier: false },
    ])('does not come back when an older answer comes $late', async ({ isEarlier }) => {
      const app = await start();
      const groups = app.nest.get(SessionEventGroups);
      await app.signIn('bob');
      await groups.create('bob');
      await app.nest.get(Deadlines, { strict: false }).schedule(paymentDue, 'bob', { in: '2h', data: { total: '' } });
      await eventually(async () => expect(await groups.deadLetters()).toHaveLength(1));
      const page = await open(app, { hash: `#${view}${read.replace(/^[^?]+/, '')}` });
      const card = page.locator(`#${view} .cards > li`, { hasText: 'bob' });
      await card.evaluate((element) => element.setAttribute('class', 'card old'));

      const [asked, answered] = [new Gate(), new Gate()];
      const hold = async (route: Route): Promise<void> => {
        const response = await route.fetch();
        void asked.pass();
        await answered.pass();
        await route.fulfill({ response });
      };
      await page.route(({ href }) => href.endsWith(`/${read}`), hold, { times: 1 });
      await press(page, 'Refresh');
      await asked.reached();
      await card.getByRole('button', { name: button }).click();
      if (isEarlier) {
        answered.open();
        await page.locator('.old').waitFor({ state: 'detached' });
      }
      await confirm(page, yes);
      await status(page)
        .getByText(/ is (discarded|cancelled|removed)\.$/)
        .waitFor();
      if (!isEarlier) {
        answered.open();
        await status(page).getByText('Up to date.').waitFor();
      }
      await card.waitFor({ state: 'detached' });
    });
  });

  it('shows groups, and removes one that is not used', async () => {
    const app = await start();
    await app.nest.get(SessionEventGroups).create('unused');
    const page = await open(app, { hash: '#groups' });
    await page.getByRole('button', { name: 'Remove: group unused' }).click();
    await confirm(page, 'Remove it');
    await status(page).getByText('The group is removed.').waitFor();
    await page.getByRole('button', { name: 'Remove: group unused' }).waitFor({ state: 'detached' });
    expect(await page.locator('#group-list h3').allInnerTexts()).toEqual(['default', 'default']);
    await page.getByRole('button', { name: 'Remove: group default' }).first().click();
    await confirm(page, 'Remove it');
    await page.getByRole('alert').getByText('An instance of this group is alive: stop it first').waitFor();
    expect(errors.splice(0)).toEqual([expect.stringContaining('status of 409')]);
  });

  it('shows deadlines, and cancels one', async () => {
    const app = await start();
    const deadlines = app.nest.get(Deadlines, { strict: false });
    for (const key of ['order 1', 'order 2']) {
      await deadlines.schedule(paymentDue, key, { in: '2h', data: { total: 'secret-total' } });
    }
    const page = await open(app, { hash: '#deadlines' });
    await page.getByRole('link', { name: 'Show them: deadlines order.payment-due' }).click();
    const card = page.locator('#deadline-list > li', { hasText: 'order 1' });
    expect(await card.innerText()).toMatch(/Due\s+in (1 hour|2 hours)[^]*Data\s+\d+ bytes/);
    await card.getByRole('button').click();
    await confirm(page, 'Cancel it');
    await status(page).getByText('The deadline is cancelled.').waitFor();
    expect(await deadlines.count(paymentDue)).toBe(1);
    await eventually(async () => expect(await page.locator('#deadline-list > li').count()).toBe(1));
  });

  it('has no button for what one may not do', async () => {
    const app = await start({ access: () => 'read' });
    await app.signIn('bob');
    await app.nest.get(Deadlines, { strict: false }).schedule(paymentDue, 'a', { in: '2h', data: { total: '' } });
    const page = await open(app);
    const views = ['users?username=bob', 'groups', 'letters', 'deadlines?name=order.payment-due'];
    for (const view of views) {
      await page.goto(`${PATH}#${view}`);
      await page
        .locator(`#${view.split('?')[0]} .card`)
        .first()
        .waitFor();
      const buttons = await page.getByRole('button').allInnerTexts();
      expect([view, ...buttons.filter((text) => text !== 'Search')]).toEqual([view, 'Refresh']);
    }
  });

  it('shows only what the application has', async () => {
    const app = await AdminApp.start();
    await app.signIn('bob');
    const page = await open(app, { hash: '#users?username=bob' });
    await page.getByRole('heading', { name: '1 session of bob' }).waitFor();
    expect(await page.getByRole('navigation').getByRole('link').allInnerTexts()).toEqual(['Users']);
    expect(await page.innerText('#overview')).not.toMatch(/NaN|undefined|null/);
  });

  it('takes nothing for markup, and lets no text turn another around', async () => {
    const app = await start();
    await app.signIn(HTML);
    await app.nest.get(SessionEventGroups).create(HTML);
    await app.nest.get(Deadlines, { strict: false }).schedule(paymentDue, HTML, { in: '2h', data: { total: '' } });
    const page = await open(app);
    for (const view of [
      `users?username=${encodeURIComponent(HTML)}`,
      'groups',
      'letters',
      'deadlines?name=order.payment-due',
    ]) {
      await page.goto(`${PATH}#${view}`);
      const shown = page.locator(`#${view.split('?')[0]} bdi`, { hasText: HTML }).first();
      await eventually(async () => {
        await press(page, 'Refresh');
        await shown.waitFor({ timeout: 1000 });
      });
    }
    await press(page, /^Cancel/);
    await page.getByRole('dialog').locator('h2 bdi', { hasText: HTML }).waitFor();
    await page.keyboard.press('Escape');
    await page.goto(`${PATH}#groups`);
    await press(page, `Remove: group ${HTML}`);
    await page.getByRole('dialog').locator('h2 bdi', { hasText: HTML }).waitFor();
    await page.keyboard.press('Escape');
    await page.goto(`${PATH}#users?username=${encodeURIComponent(HTML)}`);
    await press(page, 'End all');
    await page.getByRole('dialog').locator('h2 bdi', { hasText: HTML }).waitFor();
    expect(await page.locator('img').count()).toBe(0);
    expect(await page.title()).toBe('Sessions');
  });

  it('runs no inline script, applies no inline style, and is in no frame', async () => {
    const app = await start({ guards: 'none' });
    const page = await open(app);
    await page.evaluate(`document.body.insertAdjacentHTML('beforeend', '<p id="bad" style="color: rgb(1, 2, 3)">bad</p>');
      document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.isBad = true' }));`);
    expect(await page.evaluate('window.isBad')).toBeUndefined();
    expect(await page.evaluate("getComputedStyle(document.getElementById('bad')).color")).not.toBe('rgb(1, 2, 3)');
    expect(errors.splice(0)).toHaveLength(2);
    const frame = await contexts[0]!.newPage();
    await frame.setContent(`<iframe src="${app.origin}${PATH}"></iframe>`);
    await eventually(() => expect(frame.frames()[1]!.url()).toBe('chrome-error://chromewebdata/'));
  });

  it('can be used by keyboard alone', async () => {
    const app = await start();
    const bob = await app.signIn('bob');
    const page = await open(app);
    // The field has the focus at once.
    await page.keyboard.type('bob');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: '1 session of bob' }).waitFor();
    const focused = () => page.evaluate<string>('document.activeElement.textContent');
    const outline = () => page.evaluate<string>('getComputedStyle(document.activeElement).outlineStyle');
    for (let i = 0; (await focused()) !== 'End this session'; i++) {
      expect(i).toBeLessThan(10);
      await page.keyboard.press('Tab');
      expect(await outline()).not.toBe('none');
    }
    await page.keyboard.press('Enter');
    // Nothing dangerous has the focus.
    expect(await focused()).toBe('Keep');
    await page.keyboard.press('Escape');
    expect(await page.getByRole('dialog').isVisible()).toBe(false);
    expect((await bob.agent.get('/cart')).status).toBe(200);
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'No live session of bob' }).waitFor();
    expect(await focused()).toBe('No live session of bob');
  });

  it('asks again at once, before the browser has told that the question is gone', async () => {
    const app = await start();
    await app.signIn('bob');
    const page = await open(app, { hash: '#users?username=bob' });
    await page.getByRole('button', { name: 'End this session' }).waitFor();
    const asked = await page.evaluate<boolean[]>(`(async () => {
      const dialog = document.querySelector('dialog');
      const button = document.querySelector('#sessions .danger');
      const isOpen = [];
      let closed = 0;
      dialog.addEventListener('close', () => closed++);
      for (const close of [() => dialog.requestClose(), () => document.getElementById('dialog-no').click()]) {
        button.click();
        close();
        isOpen.push(dialog.open);
        for (let i = 0; i < 20; i++) await null;
        if (closed > 0) throw new Error('There was a frame: this proves nothing.');
        button.click();
        isOpen.push(dialog.open);
        if (!dialog.open) break;
        while (closed === 0) await new Promise(requestAnimationFrame);
        closed = 0;
        isOpen.push(dialog.open);
        document.getElementById('dialog-no').click();
        while (closed === 0) await new Promise(requestAnimationFrame);
        closed = 0;
      }
      return isOpen;
    })()`);
    expect(asked).toEqual([false, true, true, false, true, true]);
    await press(page, /^End this session/);
    await confirm(page, 'End it');
    await page.getByRole('heading', { name: 'No live session of bob' }).waitFor();
  });

  describe.each(['light', 'dark'] as const)('in the %s theme', (theme) => {
    it.each([360, 1280])('is accessible, and has no bar to scroll sideways, at %s px', async (width) => {
      const app = await start({ values: (_, value) => value });
      const long = 'a'.repeat(300);
      const bob = await app.signIn('bob');
      await bob.agent.post(`/cart/${long}`);
      await app.nest.get(Deadlines, { strict: false }).schedule(paymentDue, long, { in: '2h', data: { total: '' } });
      const page = await open(app, { width, theme });
      const background = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
      expect(background).toBe(theme === 'light' ? 'rgb(245, 244, 241)' : 'rgb(22, 21, 20)');
      const check = async (what: string): Promise<void> => {
        await page.evaluate(AXE);
        const { violations, passes } = await page.evaluate<AxeResults>('axe.run(document)');
        const found = violations.map(({ id, nodes }) => [what, id, nodes.map(({ html }) => html)]);
        expect(found).toEqual([]);
        expect(passes.length).toBeGreaterThan(15);
        expect([what, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([what, width]);
      };
      for (const view of ['users', 'users?username=bob', 'groups', 'letters', 'deadlines?name=order.payment-due']) {
        await page.goto(`${PATH}#${view}`);
        const [section] = view.split('?');
        if (view !== 'users') await page.locator(`#${section} .card`).first().waitFor();
        if (view === 'users?username=bob') await page.getByText('Details').click();
        if (view === 'users?username=bob') await page.locator('pre').waitFor();
        await check(view);
      }
      await press(page, /^Cancel/);
      await check('dialog');
    });
  });
});
