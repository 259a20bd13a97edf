import { IndexedSessionRepository } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { AccountController, configureAccountApp, LOGIN } from '../support/account.app.js';
import { closeApps, startApp } from '../support/express-session.app.js';
import { OldApp, SECRET, type StoreName, STORES } from '../support/old.app.js';

LeakGuard.install();

let server: RedisServer;
let client: Redis;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.port, '127.0.0.1');
});
afterAll(async () => {
  await client.quit();
  await server.stop();
});
beforeEach(() => client.flushall());
afterEach(closeApps);

const controllers = [AccountController];

function startNew() {
  return startApp({
    controllers,
    configure: configureAccountApp,
    express: { secret: SECRET, principal: 'passport', resave: false, saveUninitialized: false },
    store: RedisSessionModule.forRoot({ url: server.url, notifications: 'off', commandTimeout: '1m' }),
  });
}

describe.each(Object.keys(STORES) as StoreName[])('an application that leaves express-session and %s', (name) => {
  it('keeps its users signed in, with their data, forms and messages', async () => {
    const old = await OldApp.start(server, name, controllers, configureAccountApp);
    const browser = old.agent();
    const { token } = (await browser.get('/token')).json<{ token: string }>();
    expect((await browser.get(LOGIN)).status).toBe(302);
    await browser.post('/cart/book', {}, { headers: { 'x-csrf-token': token } });
    expect((await browser.get('/me')).json()).toEqual({ user: 'ann', cart: ['book'], views: 1 });
    expect(Object.keys(browser.cookies)).toEqual(['connect.sid']);
    await old.stop();
    expect(await client.keys('sess:*')).toHaveLength(1);

    const { app, origin } = await startNew();
    const same = new HttpAgent(origin);
    same.setCookie(`connect.sid=${browser.cookie('connect.sid')}; Path=/`);
    const first = await same.get('/me');
    expect(first.json()).toEqual({ user: 'ann', cart: ['book'], views: 2 });
    expect(Object.keys(same.cookies)).toEqual(['SESSION']);
    expect(await client.keys('sess:*')).toEqual([]);
    expect(first.headers['cache-control']).toContain('no-store');

    expect((await same.post('/cart/pen', {}, { headers: { 'x-csrf-token': token } })).json()).toEqual({
      cart: ['book', 'pen'],
    });
    expect((await same.get('/messages')).json()).toEqual({ info: ['added book', 'added pen'] });
    const sessions = app.get(IndexedSessionRepository, { strict: false });
    expect(await sessions.findByPrincipalName('ann')).toHaveLength(1);
    await same.post('/logout', {}, { headers: { 'x-csrf-token': token } });
    expect(same.cookies).toEqual({});
    expect((await same.get('/me')).json()).toMatchObject({ user: null, cart: [] });
  });
});
