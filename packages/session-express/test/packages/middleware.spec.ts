import { Controller, Get, type INestApplication, Post, Req, Res } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { ensureLoggedIn } from 'connect-ensure-login';
import flash from 'connect-flash';
import { doubleCsrf } from 'csrf-csrf';
import { csrfSync } from 'csrf-sync';
import { rateLimit } from 'express-rate-limit';
import { csrf as luscaCsrf } from 'lusca';
import passport from 'passport';
import type { ExpressSessionModuleOptions } from '../../src/index.js';
import { closeApps, startApp } from '../support/express-session.app.js';

LeakGuard.install();
afterEach(closeApps);

@Controller()
class PageController {
  @Get('flash')
  setFlash(@Req() req: any, @Res() res: any) {
    req.flash('info', 'saved %s', 'it');
    req.flash('info', 'again');
    res.redirect('/flashed');
  }

  @Get('flashed')
  flashed(@Req() req: any) {
    return { info: req.flash('info') as unknown };
  }

  @Get('token')
  token(@Req() req: any, @Res() res: any) {
    res.json({ token: req.csrfToken?.() ?? res.locals._csrf });
  }

  @Get('touch-session')
  use(@Req() req: any) {
    req.session.used = true;
  }

  @Get('private')
  private(@Req() req: any) {
    return { user: req.user as unknown, returnTo: req.session.returnTo ?? null };
  }

  @Get('return-to')
  returnTo(@Req() req: any) {
    return { returnTo: req.session.returnTo ?? null };
  }

  @Post('form')
  form() {
    return { done: true };
  }
}

async function start(configure: (app: INestApplication) => unknown, express?: ExpressSessionModuleOptions) {
  const { agent } = await startApp({ controllers: [PageController], configure, ...(express && { express }) });
  return agent();
}

describe('connect-flash', () => {
  it('shows the messages of the last request once', async () => {
    const agent = await start((app) => app.use(flash()));
    expect((await agent.get('/flash')).status).toBe(302);
    expect((await agent.get('/flashed')).json()).toEqual({ info: ['saved it', 'again'] });
    expect((await agent.get('/flashed')).json()).toEqual({ info: [] });
  });
});

/** A form with the token of the browser is accepted, and none without it or with that of another browser. */
async function expectProtection(agent: Awaited<ReturnType<typeof start>>, header: string, refused = 403) {
  const token = async (client: typeof agent) => (await client.get('/token')).json<{ token: string }>().token;
  const post = (client: typeof agent, value?: string) =>
    client.post('/form', {}, value === undefined ? {} : { headers: { [header]: value } });
  const own = await token(agent);
  expect(await post(agent, own)).toMatchObject({ status: 201 });
  expect(await post(agent)).toMatchObject({ status: refused });
  const other = agent.fork();
  other.clearCookies();
  const foreign = await token(other);
  expect(foreign).not.toBe(own);
  expect(await post(agent, foreign)).toMatchObject({ status: refused });
}

describe('csrf-sync', () => {
  it('protects forms by a token in the session', async () => {
    const { csrfSynchronisedProtection } = csrfSync();
    await expectProtection(await start((app) => app.use(csrfSynchronisedProtection)), 'x-csrf-token');
  });
});

describe('csrf-csrf', () => {
  const protection = (getSessionIdentifier: (req: any) => string) =>
    doubleCsrf({
      getSecret: () => 'a secret of csrf-csrf',
      getSessionIdentifier,
      cookieName: 'csrf',
      cookieOptions: { secure: false },
    }).doubleCsrfProtection;

  // What cookie-parser does.
  const parseCookies = (req: any, _res: unknown, next: () => void) => {
    const pairs = (req.headers.cookie ?? '').split('; ').map((pair: string) => pair.split('='));
    req.cookies = Object.fromEntries(pairs.map(([name, value]: string[]) => [name, decodeURIComponent(value ?? '')]));
    next();
  };

  it.each(['session.id', 'sessionID'])(
    'with `saveUninitialized: true` protects forms by a token bound to %s',
    async (id) => {
      const agent = await start(
        (app) => {
          app.use(parseCookies);
          app.use(protection((req) => (id === 'sessionID' ? req.sessionID : req.session.id)));
        },
        { saveUninitialized: true },
      );
      await expectProtection(agent, 'x-csrf-token');
    },
  );

  it('protects the forms of a browser that has a session', async () => {
    const agent = await start((app) => {
      app.use(parseCookies);
      app.use(protection((req) => req.session.id));
    });
    await agent.get('/touch-session');
    const { token } = (await agent.get('/token')).json<{ token: string }>();
    expect((await agent.post('/form', {}, { headers: { 'x-csrf-token': token } })).status).toBe(201);
  });
});

describe('lusca', () => {
  // Nest answers 500, because the error of lusca has no status.
  it('protects forms by a secret in the session', async () => {
    await expectProtection(await start((app) => app.use(luscaCsrf())), 'x-csrf-token', 500);
  });
});

describe('connect-ensure-login', () => {
  it('remembers in the session where a visitor wanted to go', async () => {
    const agent = await start((app) => {
      app.use(passport.initialize());
      app.use(passport.session());
      app.use('/private', ensureLoggedIn('/login'));
    });
    const response = await agent.get('/private?a=1');
    expect([response.status, response.headers.location]).toEqual([302, '/login']);
    expect((await agent.get('/return-to')).json()).toEqual({ returnTo: '/private?a=1' });
  });
});

describe('express-rate-limit', () => {
  it('counts the requests of each session', async () => {
    const limiter = rateLimit({ limit: 2, legacyHeaders: false, keyGenerator: (req: any) => req.session.id });
    const agent = await start((app) => app.use('/return-to', limiter));
    await agent.get('/touch-session');
    const statuses = [];
    for (let i = 0; i < 3; i++) statuses.push((await agent.get('/return-to')).status);
    expect(statuses).toEqual([200, 200, 429]);
    const other = agent.fork();
    other.clearCookies();
    await other.get('/touch-session');
    expect((await other.get('/return-to')).status).toBe(200);
  });
});
