import { Controller, Get, type INestApplication, Inject, type ModuleMetadata, Post, Req, Res } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { MapSessionModule, SessionModule, Sessions } from '@nest-session/core';
import { DevalueAttributeSerializer } from '@nest-session/core/devalue';
import { RedisSessionModule } from '@nest-session/redis';
import { SpringJsonSerializer, SpringSessionModule, springSessions } from '@nest-session/spring';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent, RedisServer, TestSessionModule } from '@nest-session/testing';
import flash from 'connect-flash';
import { randomBytes } from 'node:crypto';
import passport from 'passport';
import { ExpressSessionModule, ExpressSessionSerializer } from '../../src/index.js';
import { closeApps, type ExpressSessionAppOptions, startApp } from '../support/express-session.app.js';

LeakGuard.install();
afterEach(closeApps);

let redis: RedisServer;
beforeAll(async () => (redis = await RedisServer.start()));
afterAll(() => redis.stop());

class Role {
  constructor(readonly name: string) {}
}

/** As an ORM makes it: an instance of a class with a date, a nested entity and a column without a value. */
class User {
  readonly createdAt = new Date(0);
  readonly deletedAt = undefined;
  readonly role = new Role('customer');
  readonly tags = new Set(['a']);

  constructor(readonly id: number) {}
}

const STORED_USER = { id: 7, createdAt: '1970-01-01T00:00:00.000Z', role: { name: 'customer' }, tags: {} };

class FieldError extends Error {
  constructor(readonly field: string) {
    super(`${field} is missing`);
  }
}

/** The lines of applications that were written for express-session; none of them knows of this library. */
@Controller()
class OldController {
  /** By the name of a user, the ids of their sessions. */
  static readonly ids = new Map<string, string[]>();

  constructor(@Inject(Sessions) private readonly sessions: Sessions) {}

  @Post('login')
  login(@Req() req: any) {
    return new Promise<void>((resolve, reject) =>
      req.login(new User(7), (error?: Error) => (error ? reject(error) : resolve())),
    );
  }

  @Get('me')
  me(@Req() req: any) {
    return { user: req.user ?? null, principal: req.session.principalName ?? null };
  }

  @Post('form')
  form(@Req() req: any, @Res() res: any) {
    req.flash('error', 'Please correct the form');
    req.session.saved = { form: new User(8), errors: [new FieldError('name')], at: new Date(0), none: undefined };
    req.session.visits = Number(req.body?.visits);
    res.redirect('/form');
  }

  @Get('form')
  shown(@Req() req: any) {
    const { saved } = req.session;
    delete req.session.saved;
    return { messages: req.flash('error') as unknown, saved: (saved ?? null) as unknown };
  }

  @Post('everywhere')
  everywhere(@Req() req: any) {
    return this.sessions.endAll(String(req.user.id));
  }

  @Get('devices')
  devices(@Req() req: any, @Res() res: any) {
    req.sessionStore.all((error: Error | undefined, all: unknown) => res.json(error ? { error: error.message } : all));
  }

  @Get('id')
  id(@Req() req: any) {
    return { id: req.sessionID as string };
  }
}

function configure(app: INestApplication) {
  const users = new passport.Passport();
  users.serializeUser((user, done) => done(null, user));
  users.deserializeUser((user: Express.User, done) => done(null, user));
  app.use(users.initialize(), users.session(), flash());
}

const start = (options: Partial<ExpressSessionAppOptions> = {}) =>
  startApp({ controllers: [OldController], configure, ...options });

const KEY = randomBytes(32).toString('base64');
const STORES: Record<string, () => Partial<ExpressSessionAppOptions>> = {
  memory: () => ({}),
  Redis: () => ({ store: RedisSessionModule.forRoot({ url: redis.url, namespace: 'plain' }) }),
  'an encrypted Redis': () => ({
    store: RedisSessionModule.forRoot({
      url: redis.url,
      namespace: 'encrypted',
      encryption: { keys: [{ id: 'a', key: KEY }] },
    }),
  }),
  'a Redis whose options are injected': () => ({
    store: RedisSessionModule.forRootAsync({ useFactory: async () => ({ url: redis.url, namespace: 'async' }) }),
  }),
  'the Redis of Spring': () => ({
    store: SpringSessionModule.forRoot({
      url: redis.url,
      mode: 'shared',
      serializer: new SpringJsonSerializer('typed'),
    }),
    session: springSessions(),
  }),
};

describe.each(Object.keys(STORES))('an application that was written for express-session, with %s', (store) => {
  it('signs in an entity that Passport keeps whole, and ends its sessions', async () => {
    const { agent } = await start(STORES[store]!());
    const [phone, laptop] = [agent(), agent()];
    for (const each of [phone, laptop]) expect((await each.post('/login')).status).toBe(201);
    expect((await phone.get('/me')).json()).toEqual({ user: STORED_USER, principal: '7' });
    expect((await phone.post('/everywhere')).text).toBe('2');
    for (const each of [phone, laptop]) expect((await each.get('/me')).json()).toEqual({ user: null, principal: null });
  });

  it('shows a form again with its entity, its errors and its flash message', async () => {
    const { agent } = await start(STORES[store]!());
    const visitor = agent();
    expect((await visitor.post('/form')).status).toBe(302);
    const shown = { form: { ...STORED_USER, id: 8 }, errors: [{ field: 'name' }], at: STORED_USER.createdAt };
    expect((await visitor.get('/form')).json()).toEqual({ messages: ['Please correct the form'], saved: shown });
    expect((await visitor.get('/form')).json()).toEqual({ messages: [], saved: null });
  });
});

describe('the serializer', () => {
  const OWN = new DevalueAttributeSerializer();
  const express = ExpressSessionModule.forRoot();
  const session = SessionModule.forRoot();
  const redisWith = (options: object = {}) => RedisSessionModule.forRoot({ url: 'redis://127.0.0.1:1', ...options });

  /** What a request reads of a Date that one before has assigned. */
  async function dateIn(imports: ModuleMetadata['imports'], isReplaced = true): Promise<unknown> {
    @Controller()
    class DateController {
      @Post('date')
      set(@Req() req: any) {
        if ('set' in req.session || !req.session.setAttribute) req.session.at = new Date(0);
        else req.session.setAttribute('at', new Date(0));
      }

      @Get('date')
      read(@Req() req: any) {
        const at: unknown = req.session.at ?? req.session.getAttribute('at');
        return [at instanceof Date ? 'a Date' : (at as unknown)];
      }
    }
    const building = Test.createTestingModule({ imports: imports!, controllers: [DateController] });
    for (const store of isReplaced ? [RedisSessionModule, SpringSessionModule] : [])
      building.overrideModule(store).useModule(TestSessionModule.forRoot());
    const app = (await building.compile()).createNestApplication();
    try {
      await app.listen(0, '127.0.0.1');
      const agent = await HttpAgent.for(app);
      const { status } = await agent.post('/date');
      return status === 201 ? (await agent.get('/date')).json<unknown[]>()[0] : status;
    } finally {
      await app.close();
    }
  }

  it.each<[string, () => ModuleMetadata['imports'], boolean]>([
    ['behind the module of the store', () => [session, MapSessionModule.forRoot(), express], false],
    ['before the module of the store', () => [express, MapSessionModule.forRoot(), session], false],
    ['beside a store that a test replaces', () => [session, redisWith(), express], true],
    ['before a store that a test replaces', () => [express, redisWith(), session], true],
    [
      'instead of that of Spring, which a test replaces',
      () => [session, SpringSessionModule.forRoot({ url: 'redis://127.0.0.1:1', mode: 'shared' }), express],
      true,
    ],
    ['beside the store of a test itself', () => [session, TestSessionModule.forRoot(), express], false],
  ])('is that of express-session by default %s', async (_, imports, isReplaced) => {
    expect(await dateIn(imports(), isReplaced)).toBe('1970-01-01T00:00:00.000Z');
  });

  it.each<[string, () => ModuleMetadata['imports'], boolean]>([
    ['of the store', () => [session, MapSessionModule.forRoot({ serializer: OWN }), express], false],
    ['of the store that a test replaces', () => [session, redisWith({ serializer: OWN }), express], true],
    ['of the store that a test replaces, without this package', () => [redisWith({ serializer: OWN }), session], true],
    [
      'of the store that a test replaces, whose options are injected',
      () => [express, session, RedisSessionModule.forRootAsync({ useFactory: async () => ({ serializer: OWN }) })],
      true,
    ],
    ['of the store of a test', () => [session, TestSessionModule.forRoot({ serializer: OWN }), express], false],
  ])('is the one that the application has chosen %s', async (_, imports, isReplaced) => {
    expect(await dateIn(imports(), isReplaced)).toBe('a Date');
  });

  it('refuses a Date without this package', async () => {
    expect(await dateIn([session, redisWith()])).toBe(500);
  });

  it('is named by the line at the start', async () => {
    const { log } = await start({ store: RedisSessionModule.forRoot({ url: redis.url, namespace: 'named' }) });
    await closeApps();
    expect(log.lines.join('\n')).toContain('; serializer ExpressSessionSerializer; ');
  });

  it('refuses a bigint, as JSON.stringify() does', async () => {
    const { agent } = await start({
      store: MapSessionModule.forRoot({ serializer: new ExpressSessionSerializer() }),
      configure: (app) => app.use('/me', (req: any, res: any) => res.end(String((req.session.n = [1n])))),
    });
    expect((await agent().get('/me')).status).toBe(500);
  });
});

describe('code that ends sessions by their ids', () => {
  it('is warned of once while old sessions are taken over', async () => {
    const { agent, log } = await start({ express: { secret: 's' } });
    const { id } = (await agent().get('/id')).json<{ id: string }>();
    await agent().get('/id');
    const lines = log.lines.filter((line) => line.includes('reads req.sessionID'));
    expect(lines).toEqual([expect.stringContaining('Sessions.endAll(name)')]);
    expect(lines.join()).not.toContain(id);
  });

  it('learns from an error of the store what to call instead', async () => {
    const { agent } = await start();
    expect((await agent().get('/devices')).json()).toEqual({
      error: expect.stringContaining('Sessions.ofPrincipal(name) lists the sessions of a user'),
    });
  });
});

describe('a strategy of OpenID Connect', () => {
  /** As that of openid-client: its state is in the session, and the user is what the provider has sent. */
  class OpenIdStrategy extends passport.Strategy {
    override name = 'oidc';

    override authenticate(this: any, req: any) {
      if (req.query.state === undefined) {
        req.session['oidc:login'] = { state: 'x1', nonce: 'n', code_verifier: 'v', max_age: undefined };
        return this.redirect('/callback?state=x1');
      }
      const { state } = req.session['oidc:login'] ?? {};
      delete req.session['oidc:login'];
      if (state !== req.query.state) return this.fail();
      this.success({ id_token: 'i', userinfo: { sub: 'ann' }, authTokens: { expires_at: 1 } });
    }
  }

  async function startWith(express: ExpressSessionAppOptions['express']) {
    return start({
      express,
      configure(app) {
        const users = new passport.Passport();
        users.use(new OpenIdStrategy() as never);
        users.serializeUser((user, done) => done(null, user));
        users.deserializeUser((user: Express.User, done) => done(null, user));
        app.use(users.initialize(), users.session());
        app.use('/callback', users.authenticate('oidc'), (req: any, res: any) => {
          // The provider sends no `refresh_expires_in`.
          req.session.cookie.maxAge = req.user.authTokens.refresh_expires_in * 1000;
          res.redirect('/me');
        });
        app.use('/refresh', (req: any, res: any) => {
          req.user.authTokens.expires_at = 2;
          res.end();
        });
      },
    });
  }

  it('signs in by its state in the session, and keeps tokens that are changed in place', async () => {
    const { agent } = await startWith({ principal: ({ passport: kept }: any) => kept?.user?.userinfo?.sub as string });
    const browser = agent();
    await browser.get('/callback');
    expect((await browser.get('/callback?state=x1')).status).toBe(302);
    expect((await browser.get('/callback?state=x1')).status).toBe(401);
    await browser.get('/refresh');
    const user = { id_token: 'i', userinfo: { sub: 'ann' }, authTokens: { expires_at: 2 } };
    expect((await browser.get('/me')).json()).toEqual({ user, principal: 'ann' });
  });

  it('signs in without the option `principal` as well, and the log says that nobody is the principal', async () => {
    const { agent, log } = await startWith({});
    const browser = agent();
    await browser.get('/callback');
    expect((await browser.get('/callback?state=x1')).status).toBe(302);
    expect((await browser.get('/me')).json()).toMatchObject({ user: { userinfo: { sub: 'ann' } }, principal: null });
    expect(log.lines.filter((line) => line.includes('passport-no-principal'))).toHaveLength(1);
  });
});
