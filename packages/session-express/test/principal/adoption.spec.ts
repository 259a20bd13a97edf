import { Controller, Get } from '@nestjs/common';
import { KeepSessionIdle, type SessionModuleOptions, Sessions } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import type { ExpressSessionModuleOptions } from '../../src/index.js';
import { closeApps, startApp } from '../support/express-session.app.js';
import { runIn, StepController } from '../support/step.controller.js';

LeakGuard.install();
afterEach(closeApps);

let redis: RedisServer;
beforeAll(async () => (redis = await RedisServer.start()));
afterAll(() => redis.stop());

@Controller()
class PlainController {
  /** Does not use the session. */
  @Get('plain')
  plain() {
    return {};
  }

  @Get('idle')
  @KeepSessionIdle()
  idle() {
    return {};
  }
}

let cookie: string | undefined;

/** The next version of the application, and the browser of a user who stays. */
async function startVersion(principal?: ExpressSessionModuleOptions['principal'], session: SessionModuleOptions = {}) {
  await closeApps();
  const { app, agent, log } = await startApp({
    controllers: [StepController, PlainController],
    session: { touchInterval: 0, ...session },
    express: principal === undefined ? {} : { principal },
    store: RedisSessionModule.forRoot({ url: redis.url, notifications: 'off', commandTimeout: '1m' }),
  });
  const browser = agent();
  if (cookie !== undefined) browser.setCookie(`SESSION=${cookie}; Path=/`);
  const sessions = app.get(Sessions, { strict: false });
  return {
    browser,
    log,
    sessions,
    warnings: () => log.lines.filter((line) => line.includes('finds another principal')),
  };
}

async function logIn(user: string, principal?: ExpressSessionModuleOptions['principal']) {
  cookie = undefined;
  const { browser } = await startVersion(principal);
  await runIn(browser, ({ session }) => Object.assign(session, { userId: user, email: `${user}@example.com` }));
  cookie = browser.cookie('SESSION');
}

const byId: ExpressSessionModuleOptions['principal'] = (session) => session['userId'] as string;
const byEmail: ExpressSessionModuleOptions['principal'] = (session) => session['email'] as string;

describe('a session that was stored before the option `principal`', () => {
  it.each(['/plain', '/decorated'])('gets its principal by a request to %s that renews it', async (path) => {
    const user = `ann of ${path}`;
    await logIn(user);
    const { browser, sessions } = await startVersion(byId);
    expect(await sessions.count(user)).toBe(0);
    await browser.get(path);
    expect(browser.cookie('SESSION')).toBe(cookie);
    expect(await sessions.endAll(user)).toBe(1);
    expect(await runIn(browser, ({ session }) => (session.userId as string) ?? null)).toBeNull();
  });

  it('keeps what it has when a request does not renew it', async () => {
    await logIn('ida');
    const { browser, sessions } = await startVersion(byId);
    await browser.get('/idle');
    expect(await sessions.count('ida')).toBe(0);
    const { browser: later, sessions: ofLater } = await startVersion(byId, { touchInterval: '10m' });
    await later.get('/plain');
    expect(await ofLater.count('ida')).toBe(0);
  });

  it('gets it in one of the requests of a page, which all succeed', async () => {
    await logIn('eve');
    const { browser, sessions } = await startVersion(byId);
    const tabs = Array.from({ length: 6 }, () => browser.fork());
    const set = (tab: (typeof tabs)[number], i: number) => runIn(tab, ({ session }) => void (session[`a${i}`] = i));
    await Promise.all([...tabs.slice(0, 4).map((tab) => tab.get('/plain')), set(tabs[4]!, 4)]);
    expect(await sessions.count('eve')).toBe(1);
  });

  it('gets another one, and another id with it, when the function has changed', async () => {
    await logIn('bob', byId);
    const { browser, sessions } = await startVersion(byEmail);
    await browser.get('/plain');
    expect(browser.cookie('SESSION')).not.toBe(cookie);
    expect([await sessions.count('bob'), await sessions.count('bob@example.com')]).toEqual([0, 1]);
  });

  it('keeps the one of signIn() where the function finds nobody', async () => {
    cookie = undefined;
    const before = await startVersion(false);
    await runIn(before.browser, ({ session }) => session.signIn('zoe'));
    cookie = before.browser.cookie('SESSION');
    const { browser, sessions } = await startVersion(byId);
    await browser.get('/plain');
    expect(await sessions.count('zoe')).toBe(1);
  });

  it('does not get it where a user may have no further session, and the log says so', async () => {
    await logIn('kim');
    const { browser, sessions, warnings } = await startVersion(byId, {
      maxSessions: { perPrincipal: 1, whenReached: 'refuse' },
    });
    for (let visit = 0; visit < 2; visit++) expect((await browser.get('/plain')).status).toBe(200);
    expect(await sessions.count('kim')).toBe(0);
    expect(warnings()).toEqual([expect.stringContaining('`maxSessions`')]);
  });
});
