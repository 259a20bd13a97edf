import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Inject,
  type INestApplication,
  type MiddlewareConsumer,
  Module,
  type NestModule,
  Req,
  Session as NestSession,
  UseGuards,
} from '@nestjs/common';
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent } from '@nest-session/testing';
import { MapSessionModule, Session, SessionContext, SessionId, SessionModule } from '../../src/index.js';
import { closeApps, type SessionAppOptions, startApp } from '../support/session.app.js';

LeakGuard.install();

type Request = IncomingMessage & { session: Session };
type Next = () => void;

@Controller()
class TestController {
  @Get('plain')
  plain() {
    return 'no session here';
  }

  @Get('set')
  set(@Session() session: Session) {
    session.setAttribute('a', 1);
    return { ok: true };
  }

  @Get('read')
  read(@Session() session: Session) {
    return session.attributeNames;
  }

  @Get('used')
  used(@Req() request: { session: Session }) {
    return request.session.isNew;
  }
}

afterEach(closeApps);

describe.each(['express', 'fastify'] as const)('a request on %s', (platform) => {
  const start = (options: Partial<SessionAppOptions>) =>
    startApp({ platform, controllers: [TestController], ...options });

  /** An application with a middleware in main.ts. */
  const startWith = (middleware: (request: Request, response: ServerResponse, next: Next) => void) =>
    start({ configure: (app) => void app.use(middleware) });

  it('shares the functions of its response with all others', async () => {
    const responses: ServerResponse[] = [];
    const { agent } = await startWith((_, response, next) => {
      responses.push(response);
      next();
    });
    const client = agent();
    for (const path of ['/plain', '/set', '/read']) await client.get(path);
    for (const name of ['writeHead', 'write', 'end', 'flushHeaders'] as const) {
      expect(new Set(responses.map((response) => response[name])).size).toBe(1);
    }
  });

  it('without a token uses its session for the first time while the headers are being sent', async () => {
    const { store, agent } = await startWith((request, response, next) => {
      const { writeHead } = response;
      response.writeHead = ((...args: Parameters<typeof writeHead>) => {
        response.setHeader('X-New', String(request.session.isNew));
        return Reflect.apply(writeHead, response, args);
      }) as typeof writeHead;
      next();
    });
    const { text, headers } = await agent().get('/plain');
    expect([text, headers['x-new'], headers.vary]).toEqual(['no session here', 'true', 'Cookie']);
    expect(store.calls).toEqual([]);
  });

  it('without a token changes its session too late, while Node.js sends the headers', async () => {
    const { store, agent } = await startWith((request, response) => {
      const { writeHead } = response;
      response.writeHead = ((...args: Parameters<typeof writeHead>) => {
        request.session.setAttribute('late', true);
        return Reflect.apply(writeHead, response, args);
      }) as typeof writeHead;
      response.end('whole');
    });
    const { text, setCookies } = await agent().get('/plain');
    expect([text, setCookies, store.calls]).toEqual(['whole', [], []]);
  });

  it('without a token saves what a filter changes after Node.js refused a header', async () => {
    const { store, agent } = await startWith((request, response, next) => {
      if (request.url !== '/refused') return next();
      try {
        response.writeHead(99);
      } catch {
        request.session.setAttribute('a', 1);
        response.writeHead(500).end('refused');
      }
    });
    const { text, setCookies } = await agent().get('/refused');
    expect([text, setCookies.length, store.calls]).toEqual(['refused', 1, ['create']]);
  });

  it('has its session in middleware of a module', async () => {
    @Module({})
    class MiddlewareModule implements NestModule {
      configure(consumer: MiddlewareConsumer): void {
        const middleware = ({ session }: Request, response: ServerResponse) => {
          session.setAttribute('by', 'middleware');
          response.end('answered');
        };
        consumer.apply(middleware).forRoutes('plain');
      }
    }
    const { store, agent } = await start({ imports: [MiddlewareModule] });
    const client = agent();
    expect((await client.get('/plain')).text).toBe('answered');
    expect((await client.get('/read')).json()).toEqual(['by']);
    expect(store.calls).toEqual(['create', 'load']);
  });

  it('loads its session once, with middleware and without', async () => {
    const { store, agent } = await startWith((_, __, next) => next());
    const client = agent();
    await client.get('/set');
    await client.get('/read');
    expect(store.calls).toEqual(['create', 'load']);
  });
});

describe('a request on fastify', () => {
  interface Fastify {
    use(middleware: (request: Request, response: ServerResponse, next: Next) => void): void;
    get(path: string, handler: (request: Request) => unknown): void;
    register(plugin: (context: Fastify) => Promise<void>): void;
  }

  const setsAttribute = ({ session }: Request, _: ServerResponse, next: Next) => {
    session.setAttribute('by', 'middleware');
    next();
  };

  /** A plugin with middleware of its own, which the rest of the application has not. */
  const addPlugin = (app: INestApplication) => {
    const fastify = app.getHttpAdapter().getInstance() as Fastify;
    fastify.register(async (context) => {
      context.use(setsAttribute);
      context.get('/plugin', async ({ session }) => session.attributeNames);
    });
  };

  it('has its session in middleware of a plugin', async () => {
    const { agent } = await startApp({ platform: 'fastify', controllers: [TestController], configure: addPlugin });
    const client = agent();
    expect((await client.get('/read')).json()).toEqual([]);
    expect((await client.get('/plugin')).json()).toEqual(['by']);
    expect((await client.get('/read')).json()).toEqual(['by']);
  });

  it('has its session in middleware under @nestjs/testing', async () => {
    const module = await Test.createTestingModule({
      imports: [SessionModule.forRoot(), MapSessionModule.forRoot()],
      controllers: [TestController],
    }).compile();
    const app = module.createNestApplication(new FastifyAdapter(), { logger: false });
    app.use(setsAttribute);
    await app.init();
    addPlugin(app);
    await app.listen(0, '127.0.0.1');
    const client = new HttpAgent(await app.getUrl());
    expect((await client.get('/read')).json()).toEqual(['by']);
    expect((await client.get('/plugin')).json()).toEqual(['by']);
    await app.close();
  });
});

describe('a request on express', () => {
  it('has its session although the application gives it a property `raw`, such as its body', async () => {
    const raw = (request: Request & { raw?: unknown }, _: ServerResponse, next: Next) => {
      request.raw = Buffer.from('{}');
      next();
    };
    const { store, agent } = await startApp({
      controllers: [TestController],
      configure: (app) => void app.use(raw),
    });
    const client = agent();
    expect((await client.get('/set')).status).toBe(200);
    expect((await client.get('/read')).json()).toEqual(['a']);
    expect(store.calls).toEqual(['create', 'load']);
  });

  it('keeps its session when the application routes it again', async () => {
    const { store, agent } = await startApp({
      controllers: [TestController],
      configure: (app) => {
        const express = app.getHttpAdapter().getInstance() as (request: Request, response: ServerResponse) => void;
        app.use((request: Request, response: ServerResponse, next: Next) => {
          if (request.url !== '/again') return next();
          request.session.setAttribute('first', true);
          request.url = '/set';
          express(request, response);
        });
      },
    });
    const client = agent();
    expect((await client.get('/again')).setCookies).toHaveLength(1);
    expect((await client.get('/read')).json()).toEqual(['first', 'a']);
    expect(store.calls).toEqual(['create', 'load']);
  });

  it('is held while an Express application that is called as a function responds', async () => {
    const other = new ExpressAdapter().getInstance<{
      (request: Request, response: ServerResponse, next: Next): void;
      use(middleware: (request: Request, response: ServerResponse) => void): void;
    }>();
    other.use(({ session }, response) => {
      session.setAttribute('by', 'other');
      response.end('other');
    });
    const { store, agent } = await startApp({
      controllers: [TestController],
      configure: (app) =>
        void app.use((request: Request, response: ServerResponse, next: Next) =>
          request.url === '/other' ? other(request, response, next) : next(),
        ),
    });
    const client = agent();
    store.break('create');
    expect((await client.get('/other')).status).toBe(503);
    store.repair();
    expect((await client.get('/other')).setCookies).toHaveLength(1);
    expect((await client.get('/read')).json()).toEqual(['by']);
  });

  it('has the sessions of two applications, one inside the other', async () => {
    const adapter: AbstractHttpAdapter = new ExpressAdapter();
    const inner = await NestFactory.create(
      {
        module: class InnerModule {},
        imports: [SessionModule.forRoot({ cookie: { name: 'inner' } }), MapSessionModule.forRoot()],
        controllers: [TestController],
      },
      adapter,
      { logger: false },
    );
    await inner.init();
    const { origin, app } = await startApp({
      controllers: [TestController],
      session: { cookie: { name: 'outer' } },
      configure: (outer) => {
        outer.use('/inner', ({ session }: Request, _: ServerResponse, next: Next) => {
          session.setAttribute('a', 1);
          next();
        });
        outer.use('/inner', adapter.getInstance());
      },
    });
    expect(app).toBeDefined();
    const client = new HttpAgent(origin);
    const { setCookies } = await client.get('/inner/set');
    expect(setCookies.map((cookie) => cookie.slice(0, cookie.indexOf('='))).toSorted()).toEqual(['inner', 'outer']);
    expect((await client.get('/inner/read')).json()).toEqual(['a']);
    expect((await client.get('/read')).json()).toEqual(['a']);
    await inner.close();
  });
});

/** As the guard of another library of sessions, such as better-auth: null for its visitors. */
class OtherLibrary implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<{ session: unknown; query: { user?: string } }>();
    const { user } = request.query;
    request.session = user === undefined ? null : { user };
    return true;
  }
}

@Controller()
@UseGuards(OtherLibrary)
class SharedController {
  constructor(@Inject(SessionContext) private readonly context: SessionContext) {}

  @Get('both')
  both(
    @Req() request: { session: unknown },
    @Session() session: Session,
    @SessionId() id: string,
    @NestSession() nest: unknown,
  ) {
    session.setAttribute('visits', session.getAttributeOrDefault('visits', 0) + 1);
    const isSame = nest === request.session && this.context.session === session && id === session.id;
    return { theirs: request.session, visits: session.getAttribute('visits'), isSame };
  }

  @Get('signed-in')
  signedIn() {
    return {};
  }
}

@Controller()
class LoginController {
  @Get('login')
  login(@Session() session: Session) {
    session.signIn('ann');
  }
}

describe.each(['express', 'fastify'] as const)('request.session that another library assigns on %s', (platform) => {
  it('is its own, beside the session of this library, and is logged once', async () => {
    const { agent, log } = await startApp({ platform, controllers: [SharedController] });
    const client = agent();
    for (const [visits, user] of [null, 'ann', null].entries()) {
      const response = await client.get(user ? `/both?user=${user}` : '/both');
      expect(response.json()).toEqual({ theirs: user && { user }, visits: visits + 1, isSame: true });
    }
    const lines = log.matching(/request\.session was assigned/);
    expect(lines).toEqual([
      expect.stringMatching(/at OtherLibrary\.canActivate.*by @Session\(\) of @nest-session\/core/),
    ]);
  });

  it('cannot be unset where a user would stay signed in', async () => {
    const { agent, log } = await startApp({ platform, controllers: [SharedController, LoginController] });
    const client = agent();
    await client.get('/login');
    expect((await client.get('/signed-in?user=ann')).status).toBe(200);
    expect((await client.get('/signed-in')).status).toBe(500);
    expect(log.lines.join()).toContain(
      'cannot be unset, because its user would stay signed in: call session.signOut()',
    );
  });
});
