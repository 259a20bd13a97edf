import { Controller, Get, type INestApplication, Req } from '@nestjs/common';
import { CookieSessionIdResolver, HeaderSessionIdResolver, type SessionModuleOptions } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import express from 'express';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { HttpAgent } from '@nest-session/testing';
import { closeApps, type ExpressSessionApp, startApp } from '../support/express-session.app.js';

LeakGuard.install();
afterEach(closeApps);

@Controller()
class PageController {
  @Get(['', 'app', 'app/deep/er', 'application', 'other'])
  page(@Req() { session }: any) {
    if (session) session.visits = ((session.visits as number | undefined) ?? 0) + 1;
    return { visits: (session?.visits as number | undefined) ?? 'no session' };
  }
}

const PLATFORMS = ['express', 'fastify'] as const;
const FROM_HTTPS = { headers: { 'x-forwarded-proto': 'https' } };

const start = (platform: (typeof PLATFORMS)[number], session: SessionModuleOptions, proxy = false) =>
  startApp({
    platform,
    fastify: { trustProxy: proxy },
    controllers: [PageController],
    session,
    configure: (app: INestApplication) =>
      proxy && platform === 'express' && app.getHttpAdapter().getInstance().set('trust proxy', true),
  });

it.each(PLATFORMS)('on %s, the log tells of a path that the first request is outside of', async (platform) => {
  const told = async (first: string) => {
    const app = await start(platform, { cookie: { path: '/app' } });
    for (const path of [first, '/other']) await app.agent().get(path);
    return app.log.lines.filter((line) => line.includes('outside of the path'));
  };
  expect(await told('/other')).toEqual([expect.stringMatching(/^warn .* path "\/app" .*remove `cookie.path`/)]);
  expect(await told('/app')).toEqual([]);
});

const warningsOf = ({ log }: ExpressSessionApp) => log.lines.filter((line) => line.includes('was not sent'));

describe.each(PLATFORMS)('on %s, a Secure cookie', (platform) => {
  it('is not sent over http, even if an untrusted proxy says https, and the log says so once', async () => {
    const app = await start(platform, { cookie: { secure: true } });
    const [plain, forwarded] = [app.agent(), app.agent()];
    for (const response of [await plain.get('/'), await forwarded.get('/', FROM_HTTPS)]) {
      expect(response.json()).toEqual({ visits: 1 });
      expect(response.setCookies).toEqual([]);
    }
    expect(warningsOf(app)).toEqual([
      expect.stringMatching(/^warn The session cookie was not sent.*came over http.*'trust proxy'.*trustProxy/),
    ]);
  });

  it('is sent over https, which ends at a proxy that the application trusts', async () => {
    const app = await start(platform, { cookie: { secure: true } }, true);
    const { setCookies } = await app.agent().get('/', FROM_HTTPS);
    expect(setCookies).toEqual([expect.stringMatching(/^__Host-SESSION=.*; Secure/)]);
    expect((await app.agent().get('/')).setCookies).toEqual([]);
  });

  it('is known by a resolver of the application, and by what that says of a request', async () => {
    class SecureBelowApp extends CookieSessionIdResolver {
      override cookieFor(request: IncomingMessage) {
        return { ...super.cookieFor(request), secure: request.url === '/app' };
      }
    }
    const one = (await start(platform, { sessionIdResolver: SecureBelowApp })).agent();
    expect((await one.get('/app')).setCookies).toEqual([]);
    expect((await one.get('/')).setCookies).toHaveLength(1);
    const sessionIdResolver = new CookieSessionIdResolver({ secure: true });
    expect((await (await start(platform, { sessionIdResolver })).agent().get('/')).setCookies).toEqual([]);
  });

  it('is what the rule is about: a token in a header is sent', async () => {
    const sessionIdResolver = HeaderSessionIdResolver.xAuthToken();
    const app = await start(platform, { sessionIdResolver, security: 'strict', timeout: '1h', absoluteTimeout: '8h' });
    expect((await app.agent().get('/')).headers).toHaveProperty('x-auth-token');
    expect(warningsOf(app)).toEqual([]);
  });
});

describe.each(PLATFORMS)('on %s, a request', (platform) => {
  it('outside of the path of the cookie has no session, whatever cookie it has', async () => {
    const agent = (await start(platform, { cookie: { path: '/app' } })).agent();
    for (const path of ['/app', '/app?a=/', '/app/deep/er']) {
      const { setCookies } = await agent.fork().get(path);
      expect(setCookies).toEqual([expect.stringContaining('Path=/app')]);
    }
    await agent.get('/app');
    const { cookie } = agent.headersFor('/app') as { cookie: string };
    for (const path of ['/', '/other', '/application', '/other?x=/app']) {
      const response = await agent.get(path, { headers: { cookie } });
      expect(response.json()).toEqual({ visits: 'no session' });
      expect(response.setCookies).toEqual([]);
    }
    expect((await agent.get('/app')).json()).toEqual({ visits: 2 });
  });
});

it('a request whose target has a host is below the path of the cookie when its own path is', async () => {
  const { origin } = await startApp({ controllers: [PageController], session: { cookie: { path: '/app' } } });
  const cookiesOf = async (path: string) => {
    const { port } = new URL(origin);
    const [response] = (await once(request({ host: '127.0.0.1', port, path }).end(), 'response')) as [IncomingMessage];
    response.resume();
    return response.headers['set-cookie']?.length ?? 0;
  };
  expect([await cookiesOf('http://app/app'), await cookiesOf('http://app/other')]).toEqual([1, 0]);
});

it('the path of the cookie is that of the whole URL where the application is mounted in another one', async () => {
  const { app } = await startApp({ controllers: [PageController], session: { cookie: { path: '/shop/app' } } });
  const outer = express().use('/shop', app.getHttpAdapter().getInstance() as express.Express);
  const server: Server = createServer(outer).listen(0, '127.0.0.1');
  try {
    await new Promise((resolve) => server.once('listening', resolve));
    const agent = new HttpAgent(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    expect((await agent.get('/shop/app')).setCookies).toHaveLength(1);
    expect((await agent.get('/shop/other')).json()).toEqual({ visits: 'no session' });
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
});
