import { Controller, Get, Post } from '@nestjs/common';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { ManualClock } from '@nest-session/testing';
import { resolveSessionOptions } from '../../src/configuration/session.options.js';
import { OnSecurityEvent, type SecurityEvent, Session, type SessionModuleOptions } from '../../src/index.js';
import { GatedRepository } from '../support/gated.repository.js';
import { SIGNING_KEYS } from '../support/signing.keys.js';
import { closeApps, startApp } from '../support/session.app.js';
import { DeviceBrowser } from './device.browser.js';

LeakGuard.install();
afterEach(closeApps);

/** What slow requests wait for. */
let slow: Gate;

@Controller()
class Routes {
  @Post('sign-in')
  signIn(@Session() session: Session) {
    session.signIn('ann');
  }

  @Post('rotate')
  rotate(@Session() session: Session) {
    session.changeSessionId();
  }

  @Get('slow')
  async slow(@Session() session: Session) {
    await slow.pass();
    return session.principalName;
  }

  @Post('slow-rotate')
  async slowRotate(@Session() session: Session) {
    await slow.pass();
    session.changeSessionId();
  }

  @Get('slow-timeout')
  async slowTimeout(@Session() session: Session) {
    await slow.pass();
    session.maxInactiveInterval = 3600;
  }

  @Get('who')
  who(@Session() session: Session) {
    return { name: session.principalName ?? null, attributes: session.attributeNames };
  }
}

const events: string[] = [];

class Hears {
  @OnSecurityEvent('reused-token')
  hear({ principalName }: SecurityEvent) {
    events.push(String(principalName));
  }
}

const MINUTE = 60_000;
const PAGE = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
const ANN = '{"name":"ann","attributes":["nest-session.principal"]}';

async function signedIn(options: SessionModuleOptions = {}, platform: 'express' | 'fastify' = 'express') {
  events.length = 0;
  const session: SessionModuleOptions = { rotateEvery: '10m', timeout: '12h', ...options };
  const clock = new ManualClock(Date.now());
  const store = new GatedRepository({ ...resolveSessionOptions(session), clock });
  const shared = { trustProxy: 'loopback', controllers: [Routes], providers: [Hears] };
  const app = await startApp({ ...shared, platform, session, store });
  const browser = new DeviceBrowser(app.origin);
  await browser.post('/sign-in');
  return { ...app, clock, store, browser };
}

const page = async (browser: DeviceBrowser) => (await browser.get('/who', PAGE)).body;

describe.each(['express', 'fastify'] as const)('a token that changes by time, on %s', (platform) => {
  it('changes with a page, when it is old enough, and not with what a script loads', async () => {
    const { browser, clock } = await signedIn({}, platform);
    const first = browser.jar.get('SESSION');
    clock.advance(9 * MINUTE);
    expect(await page(browser)).toBe(ANN);
    expect(browser.jar.get('SESSION')).toBe(first);
    clock.advance(MINUTE);
    await browser.get('/who');
    expect(browser.jar.get('SESSION')).toBe(first);
    expect(await page(browser)).toBe(ANN);
    const second = browser.jar.get('SESSION');
    expect(second).not.toBe(first);
    expect(await page(browser)).toBe(ANN);
    expect(browser.jar.get('SESSION')).toBe(second);
    clock.advance(10 * MINUTE);
    await page(browser);
    expect(new Set([first, second, browser.jar.get('SESSION')]).size).toBe(3);
    expect(events).toEqual([]);
  });

  it('opens the session for a minute more, and then is reported, but opens it still', async () => {
    const { browser, clock } = await signedIn({}, platform);
    const thief = browser.thief();
    clock.advance(10 * MINUTE);
    await page(browser);
    // The present token comes for the first time.
    await page(browser);
    clock.advance(MINUTE);
    expect(await page(thief)).toBe(ANN);
    expect(events).toEqual([]);
    thief.jar.set('SESSION', browser.jar.get('SESSION')!.split('~')[0]!);
    clock.advance(1);
    expect(await page(thief)).toBe(ANN);
    expect(events).toEqual(['ann']);
    expect(thief.jar.get('SESSION')).not.toContain('~');
  });

  it('is given again to a browser whose response was lost, however late, and nothing is reported', async () => {
    const { browser, clock } = await signedIn({}, platform);
    const before = browser.thief();
    clock.advance(10 * MINUTE);
    await page(browser);
    clock.advance(90 * MINUTE);
    await page(before);
    expect(before.jar.get('SESSION')).toBe(browser.jar.get('SESSION'));
    expect(await page(before)).toBe(ANN);
    expect(events).toEqual([]);
  });

  it('is the same for all tabs', async () => {
    const { browser, clock } = await signedIn({}, platform);
    const tabs = Array.from({ length: 10 }, () => browser.thief());
    clock.advance(10 * MINUTE);
    await Promise.all(tabs.map(page));
    await page(tabs[0]!);
    expect(new Set(tabs.map(({ jar }) => jar.get('SESSION'))).size).toBe(1);
    expect(events).toEqual([]);
  });
});

it('a token that changes by time is signed with what stands behind it', async () => {
  const { browser, clock } = await signedIn({ cookie: { signingKeys: SIGNING_KEYS } });
  clock.advance(10 * MINUTE);
  await page(browser);
  const [value, signature] = browser.jar.get('SESSION')!.split('.');
  expect(value).toMatch(/~1-[\w-]{22}$/);
  expect(await page(browser)).toBe(ANN);
  browser.jar.set('SESSION', `${value!.split('~')[0]}.${signature}`);
  expect(await page(browser)).not.toBe(ANN);
});

it.each(['', '0-0', '1-abc', '1-AAAAAAAAAAAAAAAAAAAAAA', '__proto__', '9'.repeat(60)])(
  'a token with %p behind it, which no turn ever was, is reported',
  async (turn) => {
    const { browser, clock } = await signedIn();
    clock.advance(10 * MINUTE);
    await page(browser);
    await page(browser);
    clock.advance(2 * MINUTE);
    browser.jar.set('SESSION', `${browser.jar.get('SESSION')!.split('~')[0]}~${turn}`);
    expect(await page(browser)).toBe(ANN);
    expect(events).toEqual(['ann']);
  },
);

it('a token keeps its turn when the session gets another id, and begins anew with a sign-in', async () => {
  const { browser, clock } = await signedIn();
  clock.advance(10 * MINUTE);
  await page(browser);
  await browser.post('/rotate');
  expect(browser.jar.get('SESSION')).toMatch(/~1-/);
  expect(await page(browser)).toBe(ANN);
  await browser.post('/sign-in');
  expect(browser.jar.get('SESSION')).not.toContain('~');
  clock.advance(2 * MINUTE);
  expect(await page(browser)).toBe(ANN);
  expect(events).toEqual([]);
});

it('a token that is over gets no other turn with a cookie that is sent again', async () => {
  const { browser, clock } = await signedIn({ cookie: { maxAge: '1d' } });
  const thief = browser.thief();
  clock.advance(10 * MINUTE);
  for (let visit = 1; visit <= 2; visit++) await page(browser);
  clock.advance(2 * MINUTE);
  const answer = await thief.get('/who');
  expect(answer.headers['set-cookie']).toHaveLength(1);
  expect(thief.jar.get('SESSION')).not.toContain('~');
  expect(events).toEqual(['ann']);
  clock.advance(2 * MINUTE);
  await browser.get('/who');
  expect(browser.jar.get('SESSION')).toMatch(/~1-/);
});

it.each([
  ['that renews the cookie', 'GET', '/slow', { maxAge: '30d' }, 0],
  ['that renews the cookie, and is the first of the turns', 'GET', '/slow', { maxAge: '30d' }, -1],
  ['that sets another timeout', 'GET', '/slow-timeout', { maxAge: '30d' }, 0],
  ['that gives the session another id', 'POST', '/slow-rotate', {}, 0],
] as const)('a late response %s does not set the turn back', async (_, method, path, cookie, turns) => {
  const { browser, clock } = await signedIn({ cookie });
  for (let turn = turns; turn <= 0; turn++) {
    clock.advance(10 * MINUTE);
    if (turn < 0) continue;
    for (let visit = 1; visit <= 2; visit++) await page(browser);
    clock.advance(10 * MINUTE);
  }
  slow = new Gate();
  const late = browser.send(method, path);
  await slow.reached();
  for (let visit = 1; visit <= 2; visit++) await page(browser);
  const [, turn] = browser.jar.get('SESSION')!.split('~');
  slow.open();
  await late;
  expect(browser.jar.get('SESSION')!.split('~')[1]).toBe(turn);
  clock.advance(2 * MINUTE);
  expect(await page(browser)).toBe(ANN);
  expect(events).toEqual([]);
});

it('a sign-in with a token that is over begins anew', async () => {
  const { browser, clock } = await signedIn();
  const restored = browser.thief();
  for (let turn = 1; turn <= 2; turn++) {
    clock.advance(10 * MINUTE);
    for (let visit = 1; visit <= 2; visit++) await page(browser);
    if (turn === 1) restored.jar.set('SESSION', browser.jar.get('SESSION')!);
  }
  clock.advance(2 * MINUTE);
  await restored.post('/sign-in');
  expect(restored.jar.get('SESSION')).not.toContain('~');
  events.length = 0;
  expect(await page(restored)).toBe(ANN);
  expect(events).toEqual([]);
});

it('nobody fails to load a page because the token cannot change', async () => {
  const { browser, clock, store } = await signedIn();
  const first = browser.jar.get('SESSION');
  clock.advance(10 * MINUTE);
  store.break('update');
  expect(await page(browser)).toBe(ANN);
  expect(browser.jar.get('SESSION')).toBe(first);
  store.repair();
  await page(browser);
  expect(browser.jar.get('SESSION')).not.toBe(first);
});

it('nothing changes by time without the option, or for a visitor', async () => {
  const { browser, clock } = await signedIn({ rotateEvery: undefined! });
  const first = browser.jar.get('SESSION');
  clock.advance(10 * MINUTE);
  await page(browser);
  expect(browser.jar.get('SESSION')).toBe(first);
});
