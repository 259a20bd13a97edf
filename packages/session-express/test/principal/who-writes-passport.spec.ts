import {
  Authenticated,
  IndexedSessionRepository,
  OnSecurityEvent,
  type SecurityEvent,
  Sessions,
} from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';
import { SpringJsonSerializer, SpringSessionModule, springSessions } from '@nest-session/spring';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { Controller, Get, Injectable } from '@nestjs/common';
import { closeApps, type ExpressSessionAppOptions, startApp } from '../support/express-session.app.js';
import { logInByPassport, type PassportLoginOptions } from '../support/passport-login.js';
import { request, runIn, type Step, StepController, type StepRequest } from '../support/step.controller.js';

LeakGuard.install();
afterEach(closeApps);

let redis: RedisServer;
beforeAll(async () => (redis = await RedisServer.start()));
afterAll(() => redis.stop());

@Controller()
class PrivateController {
  @Get('private')
  @Authenticated()
  see() {
    return 'yours';
  }
}

@Injectable()
class Reports {
  readonly events: SecurityEvent[] = [];

  @OnSecurityEvent('passport-no-principal')
  hear(event: SecurityEvent) {
    this.events.push(event);
  }
}

const STORES: Record<string, () => Pick<ExpressSessionAppOptions, 'store' | 'session'>> = {
  memory: () => ({}),
  Redis: () => ({ store: RedisSessionModule.forRoot({ url: redis.url }) }),
  Spring: () => ({
    store: SpringSessionModule.forRoot({
      url: redis.url,
      mode: 'shared',
      serializer: new SpringJsonSerializer('plain'),
    }),
    session: springSessions(),
  }),
};

async function start(options: Partial<ExpressSessionAppOptions> = {}) {
  const controllers = [StepController, PrivateController];
  const { app, agent, log } = await startApp({ controllers, ...options });
  const client = agent();
  const run = <T>(step: Step<T>) => runIn(client, step);
  const sessions = app.get(Sessions, { strict: false });
  const repository = app.get(IndexedSessionRepository, { strict: false });
  const count = async (name: string) => (await repository.findByPrincipalName(name)).length;
  const isIn = async () => (await client.get('/private')).status === 200;
  return {
    app,
    client,
    run,
    sessions,
    count,
    isIn,
    log,
    who: () => run(({ session }) => session.principalName ?? null),
  };
}

/** By what it does, code that lets a client choose what is written. */
const FORGERIES: [string, Step<unknown>][] = [
  ['assigns the property', ({ session }) => void (session.passport = { user: 'admin' })],
  ['assigns the text that @fastify/passport keeps', ({ session }) => void (session.passport = 'admin')],
  ['assigns a body', ({ session }) => Object.assign(session, { theme: 'dark', passport: { user: { id: 'admin' } } })],
  ['calls setAttribute()', ({ session }) => session.setAttribute('passport', { user: 'admin' })],
  ['calls set()', ({ session }) => session.set('passport', { user: 'admin' })],
  ['writes into the object', ({ session }) => void ((session.passport ??= {}).user = 'admin')],
  [
    'defines the property',
    ({ session }) => void Object.defineProperty(session, 'passport', { value: { user: 'admin' } }),
  ],
  [
    'saves and reloads the session',
    async (req) => {
      (req.session.passport ??= {}).user = 'admin';
      await req.session.save();
      await req.session.reload();
      (req.raw ?? req).session.seen = 1;
    },
  ],
  [
    'regenerates the session before',
    async (req) => {
      await req.session.regenerate();
      (req.raw ?? req).session.passport = { user: 'admin' };
    },
  ],
];

describe.each(Object.keys(STORES))('a user of Passport that Passport has not written, with the store %s', (store) => {
  it.each(FORGERIES)('signs nobody in when code %s', async (_, forge) => {
    const { client, run, isIn, who, count } = await start(STORES[store]!());
    await run(({ session }) => void (session.cart = 'apple'));
    for (const step of [forge, forge, ({ session }: StepRequest) => void (session.other = 1)]) {
      await request(client, step);
      expect([await isIn(), await who(), await count('admin')]).toEqual([false, null, 0]);
    }
  });
});

it.each(FORGERIES.slice(0, -1))(
  'the user whom Passport has signed in stays the principal when code %s',
  async (_, forge) => {
    const { client, run, who, count } = await start();
    await run((req) => logInByPassport(req, 'ann'));
    await request(client, forge);
    await run(({ session }) => void (session.other = 1));
    expect([await who(), await count('ann'), await count('admin')]).toEqual(['ann', 1, 0]);
    await run(({ session }) => void delete session.passport);
    expect(await who()).toBeNull();
  },
);

it('a request that forges its user after a login has the user of the login', async () => {
  const { run, who, count } = await start();
  await run(async (req) => {
    await logInByPassport(req, 'ann');
    Object.assign((req.raw ?? req).session, { passport: { user: 'admin' } });
  });
  expect([await who(), await count('admin')]).toEqual(['ann', 0]);
});

describe.each(Object.keys(STORES))('a login by Passport, with the store %s', (store) => {
  it.each<[string, PassportLoginOptions]>([
    ['', {}],
    ['that keeps the information of the session', { keepSessionInfo: true }],
    ['of an instance with a key of its own', { key: 'customer' }],
  ])('%s signs in, stays through later requests and ends with all sessions of the user', async (_, options) => {
    const { run, isIn, who, sessions } = await start(STORES[store]!());
    const name = `ann of ${store} ${Object.keys(options).join()}`;
    const key = options.key ?? 'passport';
    await run(({ session }) => Object.assign(session, { cart: 'apple', passport: { user: 'admin' } }));
    await run((req) => logInByPassport(req, name, options));
    await run(({ session }) => void (session[key].seen = 'today'));
    expect([await isIn(), await who()]).toEqual([true, name]);
    expect(await sessions.endAll(name)).toBe(1);
    expect(await isIn()).toBe(false);
  });
});

describe.each<[string, object]>([
  ['with an id', { id: 7, role: 'user' }],
  ['without an id', { name: 'bob', role: 'user' }],
])('the user %s that Passport keeps whole', (_, user) => {
  it.each<[string, Step<unknown>]>([
    ['is changed in place', ({ session }) => void (session.passport.user.role = 'admin')],
    [
      'is replaced by one with the same id',
      ({ session }) => void (session.passport = { user: { ...user, role: 'admin' } }),
    ],
    ['is replaced by one without an id', ({ session }) => void (session.passport = { user: { role: 'admin' } })],
    ['is replaced by one that finds anybody', ({ session }) => void (session.passport.user = { id: { $ne: null } })],
    [
      'is replaced, and saved',
      async (req) => {
        req.session.passport = { user: { role: 'admin' } };
        await req.session.save();
      },
    ],
    [
      'is replaced by updateAttribute()',
      async ({ session }) => {
        const isRefused = (error: Error) =>
          expect(error.message).toContain('would change the principal of the session');
        await session.updateAttribute('passport', () => ({ user: { ...user, role: 'admin' } })).catch(isRefused);
        session.other = 1;
      },
    ],
  ])('stays as it is when it %s', async (_how, forge) => {
    const { run, who, log } = await start();
    await run((req) => logInByPassport(req, user));
    const before = await who();
    for (let time = 0; time < 2; time++) {
      await run(forge);
      expect([await who(), await run(({ session }) => session.passport)]).toEqual([before, { user }]);
    }
    const reported = log.lines.join().includes('Passport did not write it there');
    expect(reported || before === null || _how.includes('updateAttribute')).toBe(true);
    await run(({ session }) => void delete session.passport.user);
    expect([await who(), await run(({ session }) => session.passport.user ?? null)]).toEqual([null, null]);
  });
});

it('a login in the request that writes another user beside it signs in under the key of Passport alone', async () => {
  const { run, who } = await start();
  await run((req) => logInByPassport(req, 'bob', { key: 'customer' }));
  await run(async (req) => {
    await logInByPassport(req, 'ann');
    Object.assign((req.raw ?? req).session, { customer: { user: 'admin' }, cart: 'apple' });
  });
  expect([await who(), await run(({ session }) => [session.customer ?? null, session.cart])]).toEqual([
    'ann',
    [null, 'apple'],
  ]);
});

it('is not overruled by Passport where the application signs in by another name after the login', async () => {
  const { run, who, count } = await start();
  await run(async (req) => {
    await logInByPassport(req, 7);
    (req.raw ?? req).session.signIn('ann');
  });
  await run(({ session }) => void (session.other = 1));
  expect([await who(), await count('7')]).toEqual(['ann', 0]);
});

describe('a user that Passport has not written', () => {
  it.each(FORGERIES)('does not reach it, even before it has served a request, when code %s', async (how, forge) => {
    const { client, run, log } = await start();
    const reads: Step<unknown> = ({ session }) => (session.passport as unknown) ?? null;
    await run(({ session }) => void (session.cart = 'apple'));
    await request(client, forge);
    expect(await run(reads)).toBeNull();
    await run((req) => logInByPassport(req, 'ann'));
    await request(client, forge);
    expect(await run(reads)).toEqual(how === 'regenerates the session before' ? null : { user: 'ann' });
    expect(log.lines.join()).toContain('Passport did not write it there, so it is not stored');
  });

  it('is a value of the application with `principal: false`, which says that nothing uses Passport', async () => {
    const { run } = await start({ express: { principal: false } });
    await run(({ session }) => void (session.passport = 'C01X00T47'));
    expect(await run(({ session }) => session.passport as string)).toBe('C01X00T47');
  });
});

describe('a session manager of an older Passport', () => {
  /** As 0.4 and 0.5: without another session, and without a save. */
  const logIn = (req: any, user: unknown, isOldest: boolean) => {
    const manager = {
      _key: 'passport',
      _serializeUser: (each: unknown, _: unknown, done: (error: unknown, kept: unknown) => void) => done(null, each),
      logIn(request: any, who: unknown) {
        this._serializeUser(who, request, (_error, kept) => {
          (request.session[this._key] ??= {}).user = kept;
        });
      },
    };
    if (isOldest) req._passport = { instance: { _sm: manager } };
    else req._sessionManager = manager;
    // Its middleware reads the session before any login.
    void req.session.passport;
    manager.logIn(req, user);
  };

  it.each([true, false])('signs in and out', async (isOldest) => {
    const { run, who, count } = await start();
    await run((req) => logIn(req, 'ann', isOldest));
    expect([await who(), await count('ann')]).toEqual(['ann', 1]);
    await run(({ session }) => void delete session.passport.user);
    expect([await who(), await count('ann')]).toEqual([null, 0]);
  });
});

describe('a user of Passport without a principal', () => {
  it.each<[string, Step<unknown>, string]>([
    ['has no id', (req) => logInByPassport(req, { userinfo: {}, id_token: 'x' }), 'has no `id`, `_id` or `sub`'],
    [
      'was not written by Passport',
      ({ session }) => void (session.passport = { user: 'ann' }),
      'Passport did not write it',
    ],
  ])('is logged once, with the remedy, when it %s', async (_, step, text) => {
    const { run, log, client, isIn } = await start();
    for (let login = 0; login < 2; login++) expect((await request(client, step)).json()).toEqual({ result: null });
    await run(({ session }) => void (session.other = 1));
    const lines = log.lines.filter((line) => line.includes('passport-no-principal'));
    expect(lines).toEqual([expect.stringContaining(text)]);
    expect(lines[0]).toContain('option `principal` of ExpressSessionModule.forRoot()');
    expect(await isIn()).toBe(false);
  });

  it('is a security event where the application handles such', async () => {
    const { run, log, app } = await start({ providers: [Reports] });
    await run((req) => logInByPassport(req, { userinfo: {} }));
    await app.close();
    expect(app.get(Reports).events).toEqual([
      expect.objectContaining({ kind: 'passport-no-principal', reason: 'no-id', method: 'GET' }),
    ]);
    expect(log.lines.join()).not.toContain('passport-no-principal');
  });

  it.each<[string, unknown, string]>([
    ['true', true, 'a boolean'],
    ['a list', ['ann'], 'a list'],
    ['an object with an id of another object', { id: { a: 1 } }, 'an object'],
    ['NaN as text', 'NaN', 'is the text "NaN"'],
    ['an id that is the text undefined', { id: 'undefined' }, 'is the text "undefined"'],
    ['an empty id', { id: '' }, 'non-empty string'],
  ])('fails its login, and is not signed in without a word: %s', async (_, user, message) => {
    const { client, run, isIn } = await start();
    const login = await request(client, (req) => logInByPassport(req, user));
    expect([login.status, login.text]).toEqual([500, expect.any(String)]);
    await expect(run((req) => logInByPassport(req, user).catch((error: Error) => error.message))).rejects.toThrow(
      '500',
    );
    let text = '';
    await request(client, (req) => logInByPassport(req, user).catch((error: Error) => void (text = error.message)));
    expect(text).toContain(message);
    expect([await isIn(), await run(({ session }) => session.passport ?? null)]).toEqual([false, null]);
  });

  it.each<[string, () => unknown, string]>([
    ['an object', () => ({ admin: true }), 'returned an object without an id'],
    ['a promise', () => Promise.resolve('ann'), 'returned a promise'],
    ['a boolean', () => true, 'returned a boolean'],
    ['NaN', () => NaN, 'is the text "NaN"'],
    ['an empty text', () => '', 'is a non-empty string'],
    ...['undefined', 'null', 'NaN', '[object Object]'].map((text): [string, () => string, string] => [
      `the text ${text}`,
      () => text,
      `is the text "${text}"`,
    ]),
    [
      'an error',
      () => {
        throw new Error('no such user');
      },
      'no such user',
    ],
  ])('of a function: fails the login for %s', async (_, nameOf, message) => {
    const principal = ({ user }: any) => (user === undefined ? undefined : nameOf()) as string;
    const { client, run, log, isIn } = await start({ express: { principal } });
    await run(({ session }) => void (session.cart = 1));
    expect((await request(client, ({ session }) => void (session.user = 'ann'))).status).toBe(500);
    expect(log.lines.join()).toContain(message);
    expect([await isIn(), await run(({ session }) => session.user ?? null)]).toEqual([false, null]);
  });

  it('of a function: reads the same before and after the session was stored', async () => {
    const principal = ({ user }: any) => user && (user.at ?? 'not stored');
    const { run, who } = await start({ express: { principal } });
    await run(({ session }) => void (session.user = { at: { toJSON: () => '4f' }, other: 1 }));
    expect(await who()).toBe('4f');
    await run(({ session }) => void (session.other = 1));
    expect(await who()).toBe('4f');
  });
});
