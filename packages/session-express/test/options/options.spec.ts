import { ExpressSessionModule, type ExpressSessionModuleOptions } from '../../src/index.js';
import { Controller, Get, Req, Res } from '@nestjs/common';
import {
  InvalidSessionOptionsError,
  MapSessionModule,
  SessionModule,
  type SessionModuleOptions,
  SessionOutagePolicy,
} from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { closeApps, type ExpressSessionAppOptions, startApp } from '../support/express-session.app.js';
import { GatedStore } from '../support/gated.store.js';
import { request, runIn, StepController, type StepRequest } from '../support/step.controller.js';

LeakGuard.install();
afterEach(closeApps);

/** The problems that fail the start. */
async function problemsOf(express: object, session: SessionModuleOptions = {}): Promise<readonly string[]> {
  const error: unknown = await startApp({ express: express as ExpressSessionModuleOptions, session }).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error === undefined) return [];
  expect(error).toBeInstanceOf(InvalidSessionOptionsError);
  return (error as InvalidSessionOptionsError).problems;
}

const LIFETIME: SessionModuleOptions = { timeout: '1d', cookie: { maxAge: '1d' } };

it('cookie.maxAge of ten years is the 400 days that browsers keep a cookie', async () => {
  const session: SessionModuleOptions = { timeout: '400d', cookie: { maxAge: '400d' } };
  expect(await problemsOf({ cookie: { maxAge: 315_360_000_000 } }, session)).toEqual([]);
});

describe('an option of express-session', () => {
  it.each<[what: string, options: object, answer: string, session?: SessionModuleOptions]>([
    ['resave: false', { resave: false }, '`resave`: a request without changes writes nothing'],
    ['resave: true', { resave: true }, '`resave`: a request without changes writes nothing'],
    ['rolling: true', { rolling: true }, '`rolling`: a cookie with a lifetime is sent again', LIFETIME],
    ['rolling: false', { rolling: false }, '`rolling`: a cookie with a lifetime is sent again'],
    [
      'name',
      { name: 'shop.sid' },
      '`name`: of the old cookie, the new one is SESSION. Where several applications share a host, set `cookie: { name }`',
    ],
    ['proxy: false', { proxy: false }, '`proxy`: the platform decides which proxies it trusts'],
  ])('%s is answered in the log', async (_, express, answer, session = {}) => {
    const { log } = await startApp({ express, session });
    expect(log.lines.join('\n')).toContain(`Options of express-session: ${answer}`);
  });

  it.each<[what: string, options: object, session?: SessionModuleOptions]>([
    ['that express-session has by default', { name: 'connect.sid' }],
    ['of one application, where the new cookie has one too', { name: 'a' }, { cookie: { name: 'b' } }],
  ])('name needs no answer when it is that %s', async (_, express, session = {}) => {
    const { log } = await startApp({ express, session });
    expect(log.lines.join('\n')).not.toContain('Options of express-session');
  });

  it.each<[what: string, options: object, problem: string, session?: SessionModuleOptions]>([
    [
      'genid',
      { genid: () => 'x' },
      'Option `genid` has the counterpart `sessionTokenGenerator` of SessionModule.forRoot()',
    ],
    ['store', { store: {} }, 'Option `store` is not needed, because RedisSessionModule.forRoot() stores the sessions'],
    ['rolling: false', { rolling: false }, 'Option `rolling` cannot be false', LIFETIME],
    ['unset', { unset: 'drop' }, 'Option `unset` must be one of "keep", "destroy"'],
    ['saveUninitialized', { saveUninitialized: 1 }, 'Option `saveUninitialized` must be true or false'],
    ['secret', { secret: '' }, 'Option `secret` must be a non-empty string or Buffer, or a list of them'],
    ['secret', { secret: ['a', 1] }, 'Option `secret` must be a non-empty string'],
    ['secret', { secret: [] }, 'Option `secret` must be a non-empty string'],
    ['name', { name: 'a b' }, 'Option `name` is not a cookie name'],
    ['name', { name: 'SESSION', secret: 'x' }, 'Option `name` is also the name of the cookie of SessionModule'],
    [
      'principal',
      { principal: 'user' },
      'Option `principal` must be a function that takes the session and returns at once',
    ],
    ['principal', { principal: async () => 'ada' }, 'not an async one, or false'],
    [
      'principal',
      { principal: () => Promise.resolve('ada') },
      'must return undefined for a session without properties: it returned a promise',
    ],
    [
      'principal',
      { principal: (s: any) => Number(s.userId) },
      'it returned no name. The name of a principal is the text "NaN"',
    ],
    [
      'principal',
      { principal: (s: any) => String(s.userId) },
      'is the text "undefined", which a missing value becomes',
    ],
    ['principal', { principal: (s: any) => `${s.userId ?? null}` }, 'is the text "null"'],
    ['principal', { principal: (s: any) => Object.prototype.toString.call(s) }, 'is the text "[object Object]"'],
    ['principal', { principal: (s: any) => s.userId ?? '' }, 'is a non-empty string of well-formed Unicode'],
    ['principal', { principal: (s: any) => s.userId !== undefined }, 'it returned a boolean'],
    ['principal', { principal: (s: any) => ({ ...s }) }, 'it returned an object without an id'],
    ['principal', { principal: () => Symbol('x') }, 'it returned a symbol'],
    [
      'principal',
      { principal: (s: any) => s.user.id },
      'throws for a session without properties: return undefined there',
    ],
    ['principal', { principal: () => 'ada' }, 'or every visitor is a signed-in user'],
    [
      'cookie.maxAge of ten years',
      { cookie: { maxAge: 315_360_000_000 } },
      "set `timeout: '400d', cookie: { maxAge: '400d' }` in SessionModule.forRoot()",
    ],
    [
      'cookie',
      { cookie: () => ({}) },
      'Option `cookie` must be an object: for other attributes by request, extend CookieSessionIdResolver',
    ],
    ['cookie.maxAge', { cookie: { maxAge: 86_400_000 } }, "set `timeout: '86400s', cookie: { maxAge: '86400s' }`"],
    ['cookie.secure', { cookie: { secure: true } }, 'set `cookie: { secure: true }` in SessionModule.forRoot()'],
    ['cookie.httpOnly', { cookie: { httpOnly: false } }, 'set `cookie: { httpOnly: false }`'],
    ['cookie.sameSite', { cookie: { sameSite: true } }, 'set `cookie: { sameSite: "strict" }`'],
    [
      'cookie.sameSite',
      { cookie: { sameSite: 'auto' } },
      "`cookie.sameSite` cannot be 'auto': extend CookieSessionIdResolver",
    ],
    [
      'cookie.domain',
      { cookie: { domain: '.example.com' } },
      'set `cookie: { domain: "example.com" }` in SessionModule.forRoot(), or remove it here',
    ],
    ['cookie.partitioned', { cookie: { partitioned: true } }, 'set `cookie: { partitioned: true }`'],
    [
      'cookie.expires',
      { cookie: { expires: new Date() } },
      'Option `cookie.expires` would end all cookies at the same time',
    ],
    ['cookie.priority', { cookie: { priority: 'high' } }, 'Option `cookie.priority` has no counterpart'],
    ['cookie.signed', { cookie: { signed: true } }, 'Option `cookie.signed` does nothing'],
    ['cookie.encode', { cookie: { encode: String } }, 'Option `cookie.encode` has no counterpart'],
    ['an unknown one', { secrt: 'x' }, 'Unknown option `secrt`: known are'],
  ])('%s fails the start with the reason, where it cannot be kept', async (_, express, problem, session = {}) => {
    expect(await problemsOf(express, session)).toEqual([expect.stringContaining(problem)]);
  });

  it.each<[what: string, options: object, session?: SessionModuleOptions]>([
    ['that of the session cookie', { cookie: { httpOnly: true, secure: 'auto', sameSite: 'lax', path: '/' } }],
    ['a lifetime that the session cookie has', { cookie: { maxAge: 86_400_000 } }, LIFETIME],
    ['null', { cookie: { maxAge: null, expires: null } }],
    [
      'of a domain that the session cookie has',
      { cookie: { domain: '.example.com' } },
      { cookie: { domain: 'example.com' } },
    ],
    ['sameSite: true with strict', { cookie: { sameSite: true } }, { cookie: { sameSite: 'strict' } }],
  ])('cookie is accepted when it is %s', async (_, express, session = {}) => {
    expect(await problemsOf(express, session)).toEqual([]);
  });

  it('is reported together with the others', async () => {
    expect(await problemsOf({ genid: () => 'x', store: {}, secret: '' })).toHaveLength(3);
  });

  describe('proxy: true', () => {
    const express = { proxy: true };

    it.each<[what: string, options: ExpressSessionAppOptions]>([
      ['app.set() of main.ts', { configure: (app) => (app as NestExpressApplication).set('trust proxy', 'loopback') }],
      ['`trustProxy` of Fastify', { platform: 'fastify', fastify: { trustProxy: 'loopback' } }],
    ])('is accepted with %s', async (_, options) => {
      const { log } = await startApp({ express, ...options });
      expect(log.lines.join('\n')).toContain('Options of express-session: `proxy`: the platform decides');
    });

    it.each<[what: string, options: ExpressSessionAppOptions]>([
      ['Express', {}],
      [
        'Express that was told not to',
        { configure: (app) => (app as NestExpressApplication).set('trust proxy', false) },
      ],
      ['Fastify', { platform: 'fastify' }],
    ])('fails the start with %s, which trusts none', async (_, options) => {
      await expect(startApp({ express, ...options })).rejects.toThrow(
        'ExpressSessionModule: Option `proxy` is a setting of the platform: remove it, and call app.set("trust proxy", 1)',
      );
    });

    it('is accepted without a platform, as in a worker', async () => {
      class AppModule {}
      const imports = [SessionModule.forRoot(), MapSessionModule.forRoot(), ExpressSessionModule.forRoot(express)];
      const context = await NestFactory.createApplicationContext(
        { module: AppModule, imports },
        { logger: false, abortOnError: false },
      );
      await context.close();
    });
  });
});

describe('rolling', () => {
  it('sends a cookie with a lifetime again whenever the session is renewed', async () => {
    const { agent } = await startApp({
      controllers: [StepController],
      session: { ...LIFETIME, touchInterval: 0 },
      express: { rolling: true },
    });
    const client = agent();
    await runIn(client, ({ session }) => void (session.a = 1));
    const response = await request(client, ({ session }) => session.cookie.originalMaxAge);
    expect(response.setCookies).toEqual([expect.stringContaining('Max-Age=86400')]);
    expect(response.json()).toEqual({ result: 86_400_000 });
  });
});

describe('saveUninitialized', () => {
  it.each([false, undefined])('%s: a visitor who sets nothing has no session', async (saveUninitialized) => {
    const { agent } = await startApp({
      controllers: [StepController],
      express: saveUninitialized === undefined ? {} : { saveUninitialized },
    });
    expect((await request(agent(), ({ session }) => session.id)).setCookies).toEqual([]);
  });

  it('true: a visitor has a session from the first request that uses it', async () => {
    const { agent } = await startApp({ controllers: [StepController], express: { saveUninitialized: true } });
    const client = agent();
    expect((await client.get('/unknown')).setCookies).toEqual([]);
    const id = await runIn(client, ({ sessionID }) => sessionID);
    expect(client.cookie('SESSION')).toBeDefined();
    expect(await runIn(client, ({ session }) => [session.id, Object.keys(session)])).toEqual([id, ['cookie']]);
  });

  it('true: a request with the token that a login has replaced is no 409 unless it sets something', async () => {
    const { agent } = await startApp({ controllers: [StepController], express: { saveUninitialized: true } });
    const client = agent();
    await request(client, ({ session }) => session.id as string);
    const late = client.fork();
    await runIn(client, async ({ session }) => {
      await session.regenerate();
    });
    const read = await request(late, ({ session }) => Object.keys(session as object));
    expect([read.status, read.json(), read.setCookies]).toEqual([200, { result: ['cookie'] }, []]);
    // As Passport signs a user out.
    const signedOut = await request(late, async (req) => {
      await req.session.save();
      await req.session.regenerate();
    });
    expect([signedOut.status, signedOut.setCookies]).toEqual([200, []]);
    expect((await request(late, ({ session }) => void (session.a = 1))).status).toBe(409);
  });

  it('true: a handler that goes on during an outage gets an empty session, which leaves that of the client alone', async () => {
    @Controller()
    class ShopController {
      @Get('shop')
      @SessionOutagePolicy('anonymous')
      shop(@Req() { session }: StepRequest) {
        return Object.keys(session);
      }
    }
    const store = new GatedStore();
    const { agent } = await startApp({
      controllers: [StepController, ShopController],
      express: { saveUninitialized: true },
      store: store.module,
    });
    const client = agent();
    await runIn(client, ({ session }) => void (session.a = 1));
    for (let outage = 1; outage <= 2; outage++) {
      store.break('load');
      const { status, text, setCookies } = await client.get('/shop');
      expect([status, text, setCookies]).toEqual([200, '["cookie"]', []]);
      store.repair();
      expect((await client.get('/shop')).json()).toEqual(['cookie', 'a']);
    }
  });

  it('true: a visitor gets no session where the headers were sent before the first use', async () => {
    const { agent } = await startApp({ controllers: [StepController], express: { saveUninitialized: true } });
    const client = agent();
    const response = await request(client, (req) => {
      const { res } = req as unknown as { res: import('node:http').ServerResponse };
      res.write('begun');
      res.end(`: ${Object.keys(req.session).join()}`);
      return new Promise(() => undefined);
    });
    expect([response.text, client.cookie('SESSION')]).toEqual(['begun: cookie', undefined]);
  });
});

describe('delete req.session', () => {
  it.each([
    ['destroy', [503, 503, false]],
    ['keep', [200, 200, false]],
  ] as const)('during an outage, with unset: %s', async (unset, expected) => {
    const store = new GatedStore();
    @Controller()
    class LogoutController {
      @Get('logout')
      logout(@Req() req: Partial<StepRequest>, @Res() res: import('node:http').ServerResponse) {
        delete req.session;
        res.end();
      }
    }
    const controllers = [StepController, LogoutController];
    const { agent } = await startApp({ controllers, express: { unset }, store: store.module });
    const client = agent();
    await runIn(client, ({ session }) => void (session.a = 1));
    store.break('load');
    const { status } = await request(client, (req: Partial<StepRequest>) => void delete req.session);
    const { status: ofResponse } = await client.get('/logout');
    store.repair();
    const isNew = await runIn(client, ({ session }) => session.isNew as boolean);
    expect([status, ofResponse, isNew]).toEqual(expected);
  });
});

describe('ExpressSessionModule', () => {
  it('says what is missing without SessionModule', async () => {
    class AppModule {}
    const start = NestFactory.create(
      { module: AppModule, imports: [ExpressSessionModule.forRoot()] },
      { logger: false, abortOnError: false },
    );
    await expect(start).rejects.toThrow('SessionModule is missing: add SessionModule.forRoot() to the imports');
  });

  it('refuses to be imported twice', async () => {
    await expect(startApp({ imports: [ExpressSessionModule.forRoot({})] })).rejects.toThrow('It is configured twice');
  });

  it.each([
    ['of another type', { unset: 'nothing' }, 'Option `unset` must be one of'],
    ['missing', undefined, 'The factory of forRootAsync() has returned undefined'],
  ])('takes its options from a factory, and says when they are %s', async (_, options, problem) => {
    class AppModule {}
    const app = await NestFactory.create(
      {
        module: AppModule,
        imports: [
          SessionModule.forRoot(),
          MapSessionModule.forRoot(),
          ExpressSessionModule.forRootAsync({ useFactory: async () => options as ExpressSessionModuleOptions }),
        ],
      },
      { logger: false, abortOnError: false },
    ).catch((error: unknown) => error);
    expect(String(app)).toContain(`ExpressSessionModule: ${problem}`);
  });

  it('refuses to take sessions over where their tokens would be refused', async () => {
    const { RandomSessionTokenGenerator } = await import('@nest-session/core/internal');
    class Short extends RandomSessionTokenGenerator {
      override generate() {
        return super.generate().slice(0, 30);
      }

      override canHaveDrawn(token: string) {
        return token.length === 30;
      }
    }
    expect(await problemsOf({ secret: 'x' }, { sessionTokenGenerator: new Short() })).toEqual([
      expect.stringContaining('Option `secret` needs a `sessionTokenGenerator`'),
    ]);
  });
});
