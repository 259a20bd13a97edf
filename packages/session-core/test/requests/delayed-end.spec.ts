import { createServer, type ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { Controller, Get, Header, Post, Redirect, Res } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent } from '@nest-session/testing';
import express from 'express';
import { Authenticated, Session, type SessionModuleOptions } from '../../src/index.js';
import { GatedRepository } from '../support/gated.repository.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

@Controller()
class Routes {
  @Post('sign-in')
  signIn(@Session() session: Session) {
    session.signIn('ada');
  }

  @Post('sign-in-by-redirect')
  @Redirect('/page')
  signInByRedirect(@Session() session: Session) {
    session.signIn('ada');
  }

  @Post('sign-in-by-hand')
  signInByHand(@Session() session: Session, @Res() response: { send(body: string): void }) {
    session.signIn('ada');
    response.send('in');
  }

  @Post('rotate')
  rotate(@Session() session: Session) {
    session.changeSessionId();
  }

  @Get('page')
  @Header('Cache-Control', 'public, max-age=60')
  page(@Session() session: Session) {
    return { name: session.principalName ?? null };
  }

  @Authenticated()
  @Get('secret')
  secret() {
    return 'secret';
  }

  @Post('sign-out')
  signOut(@Session() session: Session) {
    session.signOut();
  }
}

/** Ends responses later than it is told, as what first sends the errors of a request somewhere does. */
function delay(response: ServerResponse, wait: () => Promise<unknown>): void {
  const end = response.end.bind(response) as (...args: unknown[]) => ServerResponse;
  response.end = ((...args: unknown[]) => {
    void wait().then(() => end(...args));
    return response;
  }) as ServerResponse['end'];
}

/** An application whose responses somebody has changed before it sees them. */
function startWith(
  platform: 'express' | 'fastify',
  change: (response: ServerResponse) => void,
  session: SessionModuleOptions,
) {
  if (platform === 'fastify') {
    const serverFactory = (handler: (request: never, response: ServerResponse) => void) =>
      createServer((request, response) => {
        change(response);
        handler(request as never, response);
      });
    return startApp({ platform: new FastifyAdapter({ serverFactory }), controllers: [Routes], session });
  }
  const server = express().use((_request, response, next) => {
    change(response);
    next();
  });
  return startApp({ platform: new ExpressAdapter(server), controllers: [Routes], session });
}

describe.each(['express', 'fastify'] as const)('on %s, a response that somebody before us ends', (platform) => {
  describe.each<[string, () => Promise<unknown>]>([
    ['a moment later', () => Promise.resolve()],
    ['some milliseconds later', () => pause(5)],
  ])('%s', (_, wait) => {
    it.each<[string, SessionModuleOptions]>([
      ['the cookie of a sign-in, which is renewed', { cookie: { maxAge: '1h' }, touchInterval: 0 }],
      ['the cookie of a sign-in, which is not renewed', {}],
    ])('has %s, and what keeps caches from it', async (_name, session) => {
      const { agent } = await startWith(platform, (response) => delay(response, wait), session);
      for (const path of ['/sign-in', '/sign-in-by-redirect', '/sign-in-by-hand']) {
        const browser = agent();
        const signedIn = await browser.post(path);
        expect([path, signedIn.headers['cache-control'], browser.cookie('SESSION')]).toEqual([
          path,
          'no-store',
          expect.any(String),
        ]);
        const page = await browser.get('/page');
        expect(page.json()).toEqual({ name: 'ada' });
        expect(page.headers['cache-control']).toBe(session.cookie ? 'no-store' : 'private, max-age=60');
        expect(page.headers['vary']).toContain('Cookie');
        expect((await browser.get('/secret')).text).toBe('secret');
        await browser.post('/sign-out');
        expect(browser.cookie('SESSION')).toBeUndefined();
      }
    });
  });
});

it.each(['express', 'fastify'] as const)(
  'on %s, headers that somebody refuses end a response, not the process',
  async (platform) => {
    const change = (response: ServerResponse) => {
      response.writeHead = () => {
        throw new Error('Refused');
      };
    };
    const { agent, log } = await startWith(platform, change, {});
    await expect(agent().post('/sign-in-by-hand')).rejects.toThrow(/socket hang up|ECONNRESET/);
    expect(log.lines.join()).toContain('what has it before the session refuses its headers');
  },
);

describe('an application inside of another one', () => {
  it.each<[string, SessionModuleOptions['cookie']]>([
    ['each with a cookie of its own', { name: 'INNER', maxAge: '1h' }],
    ['both with the same one', { maxAge: '1h' }],
  ])('sends its cookies, %s', async (_, cookie) => {
    const touchInterval = 0;
    const store = new GatedRepository();
    const inner = await startApp({ store, controllers: [Routes], session: { cookie: cookie!, touchInterval } });
    const outer = await startApp({
      controllers: [Routes],
      session: { cookie: { maxAge: '1h' }, touchInterval },
      store,
      configure: (app) => app.use('/inner', inner.app.getHttpAdapter().getInstance()),
    });
    const browser = new HttpAgent(outer.origin);
    await browser.post('/sign-in');
    await browser.post('/inner/sign-in');
    for (let n = 0; n < 3; n++) {
      const before = browser.headersFor('/')['cookie'];
      expect((await browser.post('/inner/rotate')).status).toBe(201);
      expect(browser.headersFor('/')['cookie']).not.toBe(before);
      expect((await browser.get('/inner/secret')).text).toBe('secret');
      expect((await browser.get('/secret')).text).toBe('secret');
    }
  });
});
