import { Controller, Get, type INestApplication, Injectable, Post, Req, Res, UseGuards } from '@nestjs/common';
import { AuthGuard, PassportModule, PassportSerializer, PassportStrategy } from '@nestjs/passport';
import {
  IndexedSessionRepository,
  OnSessionEvent,
  RecentlyAuthenticated,
  Session,
  SessionEvent,
} from '@nest-session/core';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { signIn } from '@nest-session/testing';
import passport from 'passport';
import { Strategy } from 'passport-local';
import { closeApps, startApp } from '../support/express-session.app.js';

LeakGuard.install();
afterEach(closeApps);

interface User {
  readonly id: string;
}

@Injectable()
class LocalStrategy extends PassportStrategy(Strategy) {
  validate(username: string, password: string): User | undefined {
    return password === 'secret' ? { id: username } : undefined;
  }
}

@Injectable()
class Users extends PassportSerializer {
  serializeUser(user: User, done: (error: unknown, id: string) => void) {
    done(null, user.id);
  }

  deserializeUser(id: string, done: (error: unknown, user: User) => void) {
    done(null, { id });
  }
}

/** The gate at which requests wait that have loaded their session. */
let hold: Gate | undefined;
beforeEach(() => (hold = undefined));

@Injectable()
class LoginGuard extends AuthGuard('local') {
  override async canActivate(context: any) {
    const result = (await super.canActivate(context)) as boolean;
    await hold?.pass();
    await super.logIn(context.switchToHttp().getRequest());
    return result;
  }
}

@Controller()
class AccountController {
  static events: unknown[] = [];

  @Get('cart')
  cart(@Req() req: any) {
    req.session.cart = ['book'];
  }

  @Post('login')
  @UseGuards(LoginGuard)
  login(@Req() req: any) {
    return { user: req.user, keys: Object.keys(req.session) };
  }

  @Post('login/signed')
  @UseGuards(LoginGuard)
  signed(@Req() req: any, @Session() session: Session) {
    session.signIn(req.user.id);
    return { user: req.user, keys: Object.keys(req.session) };
  }

  @Post('password')
  @RecentlyAuthenticated('5m')
  password(@Req() req: any) {
    return { user: req.user };
  }

  /** As main.ts of an Express application would. */
  @Post('login/keeping')
  keeping(@Req() req: any, @Res() res: any) {
    const done = (error?: Error) => (error ? res.status(500).json(error.message) : res.redirect('/me'));
    passport.authenticate('local', (error: unknown, user: User | false) => {
      if (error || !user) return res.status(401).json({});
      req.logIn(user, { keepSessionInfo: true }, done);
    })(req, res, done);
  }

  @Get('me')
  me(@Req() req: any) {
    return { user: req.user ?? null, cart: req.session.cart ?? null, principal: req.session.principalName ?? null };
  }

  @Post('logout')
  logout(@Req() req: any, @Res() res: any) {
    req.logout((error?: Error) => (error ? res.status(500).json(error.message) : res.redirect('/me')));
  }

  /** As an application does with `connect-flash`. */
  @Get('private')
  async private(@Req() req: any, @Res() res: any) {
    await hold?.pass();
    if (!req.isAuthenticated()) req.session.flash = 'Sign in first';
    res.redirect('/me');
  }

  /** With a message for the next page. */
  @Post('logout/told')
  loggedOut(@Req() req: any, @Res() res: any) {
    req.logout((error?: Error) => {
      if (error) return res.status(500).json(error.message);
      req.session.flash = 'Signed out';
      res.redirect('/me');
    });
  }

  @OnSessionEvent(SessionEvent)
  record({ type, principalName }: SessionEvent) {
    AccountController.events.push([type, principalName]);
  }
}

const CREDENTIALS = { username: 'ann', password: 'secret' };

function configure(app: INestApplication) {
  app.use(passport.initialize());
  app.use(passport.session());
}

describe('passport-local with @nestjs/passport and sessions', () => {
  async function start() {
    const { app, agent } = await startApp({
      imports: [PassportModule.register({ session: true })],
      controllers: [AccountController],
      providers: [LocalStrategy, Users],
      configure,
    });
    return { app, sessions: app.get(IndexedSessionRepository, { strict: false }), agent: agent() };
  }

  it('signs in under a new id and without the attributes of the visitor', async () => {
    const { agent, sessions } = await start();
    await agent.get('/cart');
    const visitor = agent.fork();
    const login = await agent.post('/login', CREDENTIALS);
    expect(login.json()).toEqual({ user: { id: 'ann' }, keys: ['cookie', 'passport'] });
    expect(agent.cookie('SESSION')).not.toBe(visitor.cookie('SESSION'));
    expect((await agent.get('/me')).json()).toEqual({ user: { id: 'ann' }, cart: null, principal: 'ann' });
    expect((await visitor.get('/me')).json()).toEqual({ user: null, cart: null, principal: null });
    expect(await sessions.findByPrincipalName('ann')).toHaveLength(1);
  });

  it('signs in by each of two clicks, with a session of its own', async () => {
    const { agent } = await start();
    await agent.get('/cart');
    hold = new Gate();
    const tabs = [agent.fork(), agent.fork()];
    const logins = tabs.map((tab) => tab.post('/login', CREDENTIALS));
    await hold.reached();
    hold.open();
    for (const login of await Promise.all(logins)) expect([login.status, login.setCookies.length]).toEqual([201, 1]);
    for (const tab of tabs) {
      expect((await tab.get('/me')).json()).toEqual({ user: { id: 'ann' }, cart: null, principal: 'ann' });
    }
  });

  it('signs in again after the response to a login was lost', async () => {
    const { agent } = await start();
    await agent.get('/cart');
    await agent.fork().post('/login', CREDENTIALS);
    for (const path of ['/login', '/login/keeping', '/login/signed']) {
      const again = agent.fork();
      expect((await again.post(path, CREDENTIALS)).setCookies).toHaveLength(1);
      expect((await again.get('/me')).json()).toMatchObject({ user: { id: 'ann' }, principal: 'ann' });
    }
  });

  it.each(['/logout', '/logout/told'])('answers a request of a user who signs out meanwhile, by %s', async (path) => {
    const { agent } = await start();
    await agent.post('/login', CREDENTIALS);
    const [early, late] = [agent.fork(), agent.fork()];
    hold = new Gate();
    const held = early.get('/private');
    await hold.reached();
    expect((await agent.post(path)).status).toBe(302);
    hold.open();
    expect([(await held).status, (await held).setCookies]).toEqual([302, []]);
    expect((await late.get('/private')).status).toBe(302);
    expect((await late.post(path)).status).toBe(302);
    await agent.post('/login', CREDENTIALS);
    const response = await early.get('/private');
    expect([response.status, response.setCookies]).toEqual([409, []]);
    expect((await agent.get('/me')).json()).toMatchObject({ user: { id: 'ann' } });
  });

  it('refuses wrong credentials', async () => {
    const { agent } = await start();
    expect((await agent.post('/login', { ...CREDENTIALS, password: 'x' })).status).toBe(401);
    expect((await agent.get('/me')).json()).toMatchObject({ user: null });
  });

  it('keeps the attributes with keepSessionInfo, and redirects only when they are stored', async () => {
    const { agent } = await start();
    await agent.get('/cart');
    const response = await agent.post('/login/keeping', CREDENTIALS);
    expect([response.status, response.headers.location]).toEqual([302, '/me']);
    expect((await agent.get('/me')).json()).toEqual({ user: { id: 'ann' }, cart: ['book'], principal: 'ann' });
  });

  it('signs out: the session loses its user, its principal and its id', async () => {
    const { agent, sessions } = await start();
    await agent.post('/login', CREDENTIALS);
    const old = agent.fork();
    expect((await agent.post('/logout')).status).toBe(302);
    expect((await agent.get('/me')).json()).toEqual({ user: null, cart: null, principal: null });
    expect((await old.get('/me')).json()).toMatchObject({ user: null });
    expect(await sessions.findByPrincipalName('ann')).toEqual([]);
  });

  it('knows a client of the test kit by what Passport keeps in the session, not by the principal alone', async () => {
    const { app } = await start();
    const principalName = 'ann';
    const known = await signIn(app, { principalName, attributes: { passport: { user: 'ann' } } });
    expect((await known.get('/me')).json()).toEqual({ user: { id: 'ann' }, cart: null, principal: 'ann' });
    expect((await known.post('/password')).status).toBe(201);
    const unknown = await signIn(app, { principalName });
    expect((await unknown.get('/me')).json()).toEqual({ user: null, cart: null, principal: 'ann' });
  });

  describe('reports', () => {
    beforeEach(() => (AccountController.events = []));

    it('a login of a visitor with a session as a change of id, and no sign-in', async () => {
      const { agent } = await start();
      await agent.get('/cart');
      await agent.post('/login', CREDENTIALS);
      expect(AccountController.events).toEqual([
        ['created', undefined],
        ['id-changed', 'ann'],
      ]);
    });

    it('a login of a visitor without a session as its creation, and no sign-in', async () => {
      const { agent } = await start();
      await agent.post('/login', CREDENTIALS);
      expect(AccountController.events).toEqual([['created', 'ann']]);
    });

    it('a logout as two changes of id that name nobody: Passport saves it, and then regenerates the session', async () => {
      const { agent } = await start();
      await agent.post('/login', CREDENTIALS);
      await agent.post('/logout');
      expect(AccountController.events.slice(1)).toEqual([
        ['id-changed', undefined],
        ['id-changed', undefined],
      ]);
    });

    it('a sign-in when the handler calls signIn() after the guard, with another change of id', async () => {
      const { agent } = await start();
      await agent.post('/login/signed', CREDENTIALS);
      expect(AccountController.events).toEqual([
        ['created', 'ann'],
        ['id-changed', 'ann'],
        ['signed-in', 'ann'],
      ]);
    });
  });

  it('lets a user pass who must have signed in recently, only when the handler of the login calls signIn()', async () => {
    const { agent } = await start();
    await agent.post('/login', CREDENTIALS);
    expect((await agent.post('/password')).status).toBe(401);
    const login = await agent.post('/login/signed', CREDENTIALS);
    expect(login.json()).toEqual({ user: { id: 'ann' }, keys: ['cookie', 'passport'] });
    const password = await agent.post('/password');
    expect([password.status, password.json()]).toEqual([201, { user: { id: 'ann' } }]);
  });
});
