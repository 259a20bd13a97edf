import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { Controller, Get, Param, Post, Req } from '@nestjs/common';
import { IndexedSessionRepository } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { type HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { closeApps, startApp } from '../support/express-session.app.js';
import { FASTIFY_SECRET, OldFastifyApp } from '../support/old-fastify.app.js';

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

@Controller()
class CartController {
  @Post('login/:user')
  login(@Req() { session }: any, @Param('user') user: string) {
    session.user = user;
  }

  @Post('cart/:item')
  add(@Req() { session }: any, @Param('item') item: string) {
    session.set('cart', [...(session.get('cart') ?? []), item]);
  }

  @Get('me')
  me(@Req() { session }: any) {
    return { user: session.user ?? null, cart: session.cart ?? null };
  }

  @Post('logout')
  async logout(@Req() { session }: any) {
    await session.destroy();
  }
}

const OLD_COOKIE = /(^|; )sessionId=(?!s(:|%3A))/;

/** As the page on moving says it: the old cookies begin as those of express-session do. */
function rewriteUrl({ headers, url }: Pick<IncomingMessage, 'headers' | 'url'>): string {
  if (headers.cookie !== undefined) headers.cookie = headers.cookie.replace(OLD_COOKIE, '$1sessionId=s%3A');
  return url!;
}

function startNew() {
  return startApp({
    platform: 'fastify',
    fastify: { rewriteUrl },
    controllers: [CartController],
    express: { secret: FASTIFY_SECRET, name: 'sessionId', principal: ({ user }) => user as string | undefined },
    store: RedisSessionModule.forRoot({ url: server.url, notifications: 'off', commandTimeout: '1m' }),
  });
}

const namesOf = ({ cookies }: HttpAgent) => Object.keys(cookies);

describe.each([
  { kind: 'by default', options: {} },
  { kind: "with cookiePrefix: 's:'", options: { cookiePrefix: 's:' } },
])('an application that leaves @fastify/session $kind', ({ options }) => {
  it('keeps its users signed in, with their data', async () => {
    const old = await OldFastifyApp.start(server, [CartController], options);
    const browser = old.agent();
    await browser.post('/login/ann');
    await browser.post('/cart/book');
    expect(namesOf(browser)).toEqual(['sessionId']);
    await old.stop();

    const { app, agent } = await startNew();
    const same = agent();
    same.setCookie(`sessionId=${browser.cookie('sessionId')}; Path=/`);
    const stolen = same.fork();
    expect((await same.get('/me')).json()).toEqual({ user: 'ann', cart: ['book'] });
    expect(namesOf(same)).toEqual(['SESSION']);
    expect(await client.keys('sess:*')).toEqual([]);
    await same.post('/cart/pen');
    expect((await same.get('/me')).json()).toEqual({ user: 'ann', cart: ['book', 'pen'] });
    const sessions = app.get(IndexedSessionRepository, { strict: false });
    expect(await sessions.findByPrincipalName('ann')).toHaveLength(1);

    await same.post('/logout');
    expect((await stolen.get('/me')).json()).toEqual({ user: null, cart: null });
  });
});

it('the page on moving from @fastify/session rewrites the cookies as this test does', async () => {
  const page = await readFile(new URL('../../../../docs/from-express-session.md', import.meta.url), 'utf8');
  expect(page).toContain(`cookie.replace(${OLD_COOKIE}, '$1sessionId=s%3A')`);
});
