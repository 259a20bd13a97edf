import { Controller, Get, type INestApplication, Req, Res } from '@nestjs/common';
import { MapSessionModule } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { freePort } from '@nest-session/testing';
import grant from 'grant';
import passport from 'passport';
import { Strategy } from 'passport-oauth2';
import { ExpressSessionSerializer } from '../../src/index.js';
import { closeApps, startApp } from '../support/express-session.app.js';
import { OAuth2Provider } from '../support/oauth2.provider.js';

LeakGuard.install();
afterEach(closeApps);

let provider: OAuth2Provider;
beforeAll(async () => (provider = await OAuth2Provider.start()));
afterAll(() => provider.stop());

@Controller()
class PageController {
  @Get('me')
  me(@Req() req: any) {
    return { user: req.user ?? null, principal: req.session.principalName ?? null, keys: Object.keys(req.session) };
  }

  @Get('done')
  done(@Req() req: any, @Res() res: any) {
    res.json({ response: req.session.grant?.response ?? null });
  }
}

describe('passport-oauth2', () => {
  const strategy = (port: number, options: object = {}) =>
    new Strategy(
      {
        authorizationURL: `${provider.origin}/authorize`,
        tokenURL: `${provider.origin}/token`,
        clientID: 'client',
        clientSecret: 'secret',
        callbackURL: `http://127.0.0.1:${port}/callback`,
        state: true,
        ...options,
      },
      (token: string, _refresh: string, _profile: object, done: (error: unknown, user: object) => void) =>
        done(null, { id: token.slice(3) }),
    );

  async function start(options?: object) {
    const port = await freePort();
    const passports = new passport.Passport();
    passports.use('oauth2', strategy(port, options) as never);
    passports.serializeUser((user, done) => done(null, (user as { id: string }).id));
    passports.deserializeUser((id: string, done) => done(null, { id } as never));
    const { agent } = await startApp({
      controllers: [PageController],
      configure(app: INestApplication) {
        app.use(passports.initialize());
        app.use(passports.session());
        app.use('/login', passports.authenticate('oauth2'));
        app.use('/callback', passports.authenticate('oauth2', { successRedirect: '/me', failureMessage: true }));
      },
    });
    return agent();
  }

  it.each([
    ['a state', {}],
    ['a state and PKCE', { pkce: true }],
  ])('signs in with %s in the session', async (_, options) => {
    const agent = await start(options);
    const login = await agent.get('/login');
    expect(login.status).toBe(302);
    const callback = await agent.get(await provider.visit(login.headers.location!));
    expect([callback.status, callback.headers.location]).toEqual([302, '/me']);
    expect((await agent.get('/me')).json()).toEqual({
      user: { id: 'ann' },
      principal: 'ann',
      keys: ['cookie', 'passport'],
    });
  });

  it('refuses the callback of another browser', async () => {
    const agent = await start();
    const login = await agent.get('/login');
    const callback = await provider.visit(login.headers.location!);
    const other = agent.fork();
    other.clearCookies();
    expect((await other.get(callback)).status).toBe(403);
    expect((await agent.get(callback)).status).toBe(302);
  });
});

describe('grant', () => {
  it('keeps its flow in the session, and waits for the save before it redirects', async () => {
    const port = await freePort();
    const origin = `http://127.0.0.1:${port}`;
    const handler = (grant as any).express({
      defaults: { origin, transport: 'session', state: true },
      local: {
        oauth: 2,
        authorize_url: `${provider.origin}/authorize`,
        access_url: `${provider.origin}/token`,
        key: 'client',
        secret: 'secret',
        callback: '/done',
      },
    });
    const { agent: start } = await startApp({
      controllers: [PageController],
      configure: (nest) => nest.use(handler),
      // It stores members that are undefined.
      store: MapSessionModule.forRoot({ serializer: new ExpressSessionSerializer() }),
    });
    const agent = start();
    const login = await agent.get('/connect/local');
    expect(login.status).toBe(302);
    const callback = await agent.get(await provider.visit(login.headers.location!));
    expect([callback.status, callback.headers.location]).toEqual([302, '/done']);
    expect((await agent.get('/done')).json()).toMatchObject({ response: { access_token: 'of-ann' } });
  });
});
