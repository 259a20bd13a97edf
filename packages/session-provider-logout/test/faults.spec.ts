import {
  type IndexedSessionRepository,
  type SessionRepository as Repository,
  SessionRepository,
} from '@nest-session/core';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Injectable } from '@nestjs/common';
import { Redis } from 'ioredis';
import { OnProviderEvent } from '../src/index.js';
import { IdentityProvider, nowInSeconds } from './support/identity.provider.js';
import { closeApps, LogoutApp, type LogoutAppOptions, nameOf } from './support/logout.app.js';

LeakGuard.install();

const NOW = nowInSeconds();

let provider: IdentityProvider;
let server: RedisServer;
let proxy: TcpProxy;
let client: Redis;
beforeAll(async () => {
  [provider, server] = await Promise.all([IdentityProvider.start(), RedisServer.start()]);
});
beforeEach(async () => {
  proxy = await TcpProxy.start(server);
  client = new Redis(server.url);
  await client.flushall();
});
afterEach(async () => {
  proxy.release();
  await closeApps();
  await client.quit();
  await proxy.stop();
});
afterAll(() => Promise.all([provider.stop(), server.stop()]));

const start = (options: Partial<LogoutAppOptions> = {}) =>
  LogoutApp.start({
    issuers: [{ issuer: provider.issuer, audience: 'shop', accepts: ['back-channel', 'events'] }],
    redis: { url: proxy.url, events: { consume: false } },
    ...options,
  });
const login = (sub = 'ann', sid = 's-1', iat = NOW - 10) => ({ iss: provider.issuer, sub, sid, iat });
const storeOf = (app: LogoutApp) =>
  app.nest.get<IndexedSessionRepository & Repository>(SessionRepository, { strict: false });

/** The commands of a logout, and no others. */
const isOfLogout = (burst: Buffer) => /marks:|nest-session\.provider-s/.test(burst.toString('latin1'));

async function expectUnavailable(app: LogoutApp, token: string): Promise<void> {
  const answer = await app.logOut(token);
  expect([answer.status, answer.headers['retry-after'], answer.json<{ error: string }>().error]).toEqual([
    503,
    '5',
    'temporarily_unavailable',
  ]);
}

it('a reply of Redis that is lost anywhere costs a 503, and the repeat does the rest', async () => {
  const app = await start();
  const lost: number[] = [];
  for (let nth = 1; ; nth++) {
    const agents = [await app.signedIn(login('ann', `s-${nth}`)), await app.signedIn(login('ann', `s-${nth}`))];
    const token = await provider.logoutToken({ sub: 'ann', sid: `s-${nth}` });
    let commands = 0;
    let hasDropped = false;
    void proxy.dropNextReply((burst) => isOfLogout(burst) && ++commands === nth && (hasDropped = true));
    const first = await app.logOut(token);
    if (!hasDropped) break;
    lost.push(first.status);
    expect((await app.logOut(token)).status).toBe(200);
    expect((await app.logOut(token)).json()).toEqual({ ended: 0 });
    expect(await Promise.all(agents.map(nameOf))).toEqual([null, null]);
  }
  expect(lost.length).toBeGreaterThanOrEqual(4);
  expect(new Set(lost)).toEqual(new Set([503]));
});

it('a Redis that does not reply, or takes no writes, costs a 503, and the repeat ends the sessions', async () => {
  const app = await start();
  const agent = await app.signedIn(login());
  const token = await provider.logoutToken({ sub: 'ann' });
  server.freeze();
  await expectUnavailable(app, token);
  server.thaw();
  await client.config('SET', 'min-replicas-to-write', '1');
  await expectUnavailable(app, token);
  const event = await app.pushEvent(
    await provider.eventToken('https://schemas.openid.net/secevent/caep/event-type/session-revoked'),
  );
  expect([event.status, event.json<{ err: string }>().err]).toEqual([503, 'temporarily_unavailable']);
  await client.config('SET', 'min-replicas-to-write', '0');
  expect(await nameOf(agent)).toBe('ann');
  expect((await app.logOut(token)).json()).toEqual({ ended: 1 });
  expect(await nameOf(agent)).toBeNull();
});

it('a sign-in that nobody can confirm is a 503, and its client has no session', async () => {
  const app = await start();
  void proxy.dropNextReply((burst) => isOfLogout(burst) && burst.includes('marks:'));
  const agent = app.agent();
  const answer = await agent.post('/sign-in', { ...login(), name: 'ann' });
  expect([answer.status, agent.cookie('SESSION'), await nameOf(agent)]).toEqual([503, undefined, null]);
});

it('no sign-in survives a logout that meets it anywhere, with two instances', async () => {
  const [one, two] = [await start(), await start()];
  const outcomes = new Map<string, number>();
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  for (let round = 0; round < 150; round++) {
    const sid = `s-${round}`;
    const token = await provider.logoutToken(round % 2 ? { sid } : { sub: `u-${round}`, iat: NOW });
    const agent = one.agent();
    const [signedIn, loggedOut] = await Promise.all([
      pause(round % 5).then(() => agent.post('/sign-in', { ...login(`u-${round}`, sid), name: `u-${round}` })),
      pause(Math.random() * 8).then(() => two.logOut(token)),
    ]);
    expect([200, 201, 401]).toContain(signedIn.status);
    expect(loggedOut.status).toBe(200);
    expect(await nameOf(agent)).toBeNull();
    expect(await storeOf(one).findByPrincipalName(`u-${round}`)).toEqual([]);
    const outcome = `${signedIn.status} ${loggedOut.json<{ ended: number }>().ended}`;
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  }
  // Otherwise they never met.
  expect(outcomes.size).toBeGreaterThan(1);
});

it('a handler that fails or hangs does not change the answer', async () => {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  @Injectable()
  class Handlers {
    readonly called: string[] = [];

    @OnProviderEvent('back-channel')
    async fail() {
      this.called.push('fail');
      throw new Error('handler');
    }

    @OnProviderEvent('back-channel')
    hang() {
      this.called.push('hang');
      return released;
    }

    @OnProviderEvent('session-revoked')
    never() {
      this.called.push('never');
    }
  }
  const app = await start({ providers: [Handlers] });
  const agent = await app.signedIn(login());
  const token = await provider.logoutToken({ sub: 'ann' });
  expect((await app.logOut(token)).json()).toEqual({ ended: 1 });
  expect(await nameOf(agent)).toBeNull();
  await eventually(() =>
    expect(app.log.lines.join('\n')).toContain('Handlers.fail failed to handle a security or provider event'),
  );
  expect(app.nest.get(Handlers).called.toSorted()).toEqual(['fail', 'hang']);
  release();
});

it('what has begun is finished at a shutdown, and what comes then gets a 503', async () => {
  const app = await start({ redis: { url: proxy.url, commandTimeout: '60s', events: { consume: false } } });
  const agents = [await app.signedIn(login()), await app.signedIn(login())];
  const token = await provider.logoutToken({ sub: 'ann' });
  proxy.hold('reply', (burst) => isOfLogout(burst));
  const begun = app.logOut(token);
  await proxy.untilHeld();
  const closing = app.nest.close();
  const late = provider.logoutToken({ sid: 's-0' }).then((token) => app.logOut(token));
  await expect(late).resolves.toMatchObject({ status: 503 });
  proxy.release();
  expect((await begun).json()).toEqual({ ended: agents.length });
  await closing;
  const other = await start();
  expect(await storeOf(other).findByPrincipalName('ann')).toEqual([]);
});
