import type { ServerResponse } from 'node:http';
import {
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  Catch,
  Controller,
  createParamDecorator,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  Module,
  type MiddlewareConsumer,
  type NestInterceptor,
  type NestMiddleware,
  type NestModule,
  Next,
  Redirect,
  Render,
  Req,
  Res,
  Scope,
  Session as NestSession,
  Sse,
  type Type,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { APP_FILTER, APP_INTERCEPTOR, ApplicationConfig, REQUEST } from '@nestjs/core';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { ManualClock } from '@nest-session/testing';
import { EMPTY, tap } from 'rxjs';
import {
  BrowserSessions,
  KeepSessionIdle,
  Session,
  SessionAttribute,
  SessionContext,
  SessionId,
  SessionInterceptor,
  SessionOutagePolicy,
  SessionStateError,
  SessionStoreError,
} from '../../src/index.js';
import { SessionRouteGuard } from '../../src/http/session-route.guard.js';
import { GatedRepository } from '../support/gated.repository.js';
import { closeApps, type SessionAppOptions, startApp } from '../support/session.app.js';

LeakGuard.install();

interface Request {
  readonly session: Session;
}

const sessionOf = (context: ExecutionContext) => context.switchToHttp().getRequest<Request>().session;

/** The status of a failed save that reached the filters of the application. */
const FILTERED = 507;

@Catch(SessionStoreError)
class RespondsToFailedSaves implements ExceptionFilter {
  catch(_: SessionStoreError, host: ArgumentsHost): void {
    const response = host.switchToHttp().getResponse<{ status(code: number): { send(body: string): void } }>();
    response.status(FILTERED).send('filtered');
  }
}

/** Changes the session before the handler. */
class Marks implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    sessionOf(context).setAttribute('marked', true);
    return true;
  }
}

/** Changes the session after the last value of the handler, when an interceptor of ours inside of it has saved. */
class MarksAfterwards implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(tap({ complete: () => sessionOf(context).setAttribute('after', true) }));
  }
}

const User = createParamDecorator((_: unknown, context: ExecutionContext) => sessionOf(context).principalName);

@Controller('with')
@UseGuards(Marks)
class WithSession {
  @Get('session')
  session(@Session() session: Session) {
    return session.isNew;
  }

  @Get('nest')
  nest(@NestSession() session: Session) {
    return session.isNew;
  }

  @Get('id')
  id(@SessionId() id: string) {
    return id;
  }

  @Get('attribute')
  attribute(@SessionAttribute('a') a: unknown) {
    return a;
  }

  @Get('request')
  request(@Req() request: Request) {
    return request.session.isNew;
  }

  @Get('own-decorator')
  own(@User() user: string | undefined) {
    return user;
  }

  @Get('by-hand')
  @UseInterceptors(SessionInterceptor)
  byHand() {}
}

abstract class Inherited {
  @Get('inherited')
  @UseGuards(Marks)
  inherited(@Session() session: Session) {
    return session.isNew;
  }
}

@Controller('with')
class Inherits extends Inherited {}

@Controller({ path: 'with', scope: Scope.REQUEST })
class OfRequest {
  constructor(@Inject(REQUEST) readonly request: Request) {}

  @Get('scoped')
  @UseGuards(Marks)
  scoped() {}
}

@Controller('without')
@UseGuards(Marks)
class WithoutSession {
  @Get('session')
  session() {}

  /** As after a login by a guard of Passport. */
  @Get('redirect')
  @Redirect('/elsewhere')
  redirect() {}
}

@Controller('intercepted')
@UseInterceptors(MarksAfterwards)
class Intercepted {
  @Get('class')
  byClass(@Session() session: Session) {
    session.setAttribute('a', 1);
  }

  @Get('method')
  @UseInterceptors(MarksAfterwards)
  byMethod(@Session() session: Session) {
    session.setAttribute('a', 1);
  }
}

@Controller('passed-on')
class PassedOn {
  @Get()
  passOn(@Session() session: Session, @Next() next: () => void) {
    session.setAttribute('a', 1);
    next();
  }

  @Get()
  async passedOn(@Session() session: Session) {
    await session.save();
    session.setAttribute('b', 1);
  }
}

@Controller('extended')
class ExtendsIntercepted extends Intercepted {}

@Controller('otherwise')
class SentOtherwise {
  @Sse('events')
  events(@Session() session: Session) {
    session.setAttribute('a', 1);
    return EMPTY;
  }

  @Get('redirect')
  @Redirect('/elsewhere')
  redirect(@Session() session: Session) {
    session.setAttribute('a', 1);
  }

  @Get('rendered')
  @Render('view')
  rendered(@Session() session: Session) {
    return { id: session.id };
  }

  @Get('response')
  response(@Session() session: Session, @Res() response: ServerResponse) {
    response.end(session.id);
  }

  @Get('passes-through')
  passesThrough(@Session() session: Session, @Res({ passthrough: true }) response: ServerResponse) {
    session.setAttribute('a', 1);
    response.setHeader('X-Passed', 'through');
  }
}

const routesWithSession = [
  'session',
  'nest',
  'id',
  'attribute',
  'request',
  'own-decorator',
  'by-hand',
  'inherited',
  'scoped',
];
const routes = [...routesWithSession.map((route) => `with/${route}`), 'without/session', 'otherwise/passes-through'];
const controllers: Type[] = [WithSession, Inherits, OfRequest, WithoutSession, SentOtherwise];
const filter = { provide: APP_FILTER, useClass: RespondsToFailedSaves };

afterEach(closeApps);

describe('a failed save', () => {
  it.each(routes)('reaches the filters: %s', async (route) => {
    const { store, agent } = await startApp({ controllers, providers: [filter] });
    store.break('create');
    expect((await agent().get(`/${route}`)).status).toBe(FILTERED);
    expect(store.calls).toEqual(['create']);
    store.repair();
    expect((await agent().get(`/${route}`)).setCookies).toHaveLength(1);
  });
});

describe('the interceptor', () => {
  it.each(['otherwise/events', 'otherwise/redirect', 'without/redirect'])(
    'runs for a handler whose response Nest does not send behind it: %s',
    async (route) => {
      const { store, agent } = await startApp({ controllers: [SentOtherwise, WithoutSession], providers: [filter] });
      const statusOf = async () => (await agent().get(`/${route}`)).status;
      expect(await statusOf()).not.toBe(FILTERED);
      store.break('create');
      expect(await statusOf()).toBe(FILTERED);
    },
  );

  it.each(['/intercepted/class', '/intercepted/method', '/extended/class'])(
    'saves once what the interceptors of a controller change after the handler: %s',
    async (path) => {
      const { store, agent } = await startApp({ controllers: [ExtendsIntercepted, Intercepted], providers: [filter] });
      await agent().get(path);
      expect(store.calls).toEqual(['create']);
      store.break('create');
      expect((await agent().get(path)).status).toBe(FILTERED);
    },
  );

  it('leaves to Nest what a second handler changes, to which the first one has passed the request on', async () => {
    const { store, agent } = await startApp({ controllers: [PassedOn], providers: [filter] });
    expect((await agent().get('/passed-on')).status).toBe(200);
    expect(store.calls).toEqual(['create', 'update']);
    store.break('update');
    expect((await agent().get('/passed-on')).status).toBe(FILTERED);
  });

  it.each<[string, Partial<SessionAppOptions>]>([
    ['APP_INTERCEPTOR', { providers: [filter, { provide: APP_INTERCEPTOR, useClass: MarksAfterwards }] }],
    ['useGlobalInterceptors()', { configure: (app) => app.useGlobalInterceptors(new MarksAfterwards()) }],
    [
      'a request-scoped APP_INTERCEPTOR',
      { providers: [filter, { provide: APP_INTERCEPTOR, useClass: MarksAfterwards, scope: Scope.REQUEST }] },
    ],
  ])('saves once what a global interceptor changes after the handler: %s', async (_, options) => {
    /** Of its own: an interceptor of ours stays on its methods. */
    @Controller()
    @UseGuards(Marks)
    class Served {
      @Get('with')
      with(@Session() session: Session) {
        return session.isNew;
      }

      @Get('without')
      without() {}
    }
    const { store, agent } = await startApp({ controllers: [Served], providers: [filter], ...options });
    await agent().get('/with');
    await agent().get('/without');
    expect(store.calls).toEqual(['create', 'create']);
    store.break('create');
    expect((await agent().get('/without')).status).toBe(FILTERED);
  });

  it('is put once, also in a class that several applications share, and not in the class that it extends', async () => {
    @UseInterceptors(MarksAfterwards)
    abstract class Parent extends Inherited {}
    @Controller()
    class Child extends Parent {}
    for (let each = 0; each < 3; each++) await startApp({ controllers: [Child, SentOtherwise] });
    const interceptorsOf = (target: object) => Reflect.getMetadata('__interceptors__', target) as unknown[];
    const { events, redirect, rendered, response } = SentOtherwise.prototype;
    for (const each of [events, redirect, rendered, response]) {
      expect(interceptorsOf(each)).toEqual([expect.any(SessionInterceptor)]);
    }
    expect(interceptorsOf(Child)).toEqual([expect.any(SessionInterceptor), MarksAfterwards]);
    expect(interceptorsOf(Parent)).toEqual([MarksAfterwards]);
  });

  it('is not put where Nest sends what the handler returns', async () => {
    await startApp({ controllers: [WithSession, SentOtherwise] });
    const isIntercepted = (handler: object) => Reflect.hasMetadata('__interceptors__', handler);
    expect([WithSession.prototype.session, SentOtherwise.prototype.passesThrough].map(isIntercepted)).toEqual([
      false,
      false,
    ]);
  });

  it('is not global in an application without need of it', async () => {
    const { app } = await startApp({ controllers });
    expect(app.get(ApplicationConfig).getGlobalInterceptors()).toEqual([]);
  });
});

describe('the guard', () => {
  @Controller()
  class OfClass {
    @Get('held')
    held() {}
  }

  @Injectable()
  class Resolver {
    @SessionOutagePolicy('reject')
    resolve() {}
  }

  const guardsOf = async (options: Partial<SessionAppOptions>) => {
    const { app } = await startApp({ controllers: [OfClass], ...options });
    const guards = app.get(ApplicationConfig).getGlobalGuards();
    return guards.filter((each) => each instanceof SessionRouteGuard).length;
  };

  it('is global where a decorator for it occurs', async () => {
    @Controller()
    @KeepSessionIdle()
    class Idle {}
    expect(await guardsOf({})).toBe(0);
    expect(await guardsOf({ controllers: [Idle] })).toBe(1);
    expect(await guardsOf({ providers: [Resolver] })).toBe(1);
  });

  it('is not waited for by a due touch where no handler keeps sessions idle', async () => {
    const clock = new ManualClock();
    const store = new GatedRepository({ clock, timeout: 1800 });
    const gate = new Gate();
    const { agent } = await startApp({
      controllers: [WithSession],
      store,
      configure: (app) =>
        void app.use('/held', (_: unknown, __: unknown, next: () => void) => void gate.pass().then(next)),
    });
    const client = agent();
    await client.get('/with/session');
    clock.advance(600_000);
    const response = client.get('/held');
    await gate.reached();
    expect(store.calls).toEqual(['create', 'load', 'touch']);
    gate.open();
    expect((await response).status).toBe(404);
    expect(store.calls).toEqual(['create', 'load', 'touch']);
  });
});

describe('the current request', () => {
  interface Knows {
    readonly context: SessionContext;
  }

  @Injectable()
  class ByConstructor implements Knows {
    constructor(@Inject(SessionContext) readonly context: SessionContext) {}
  }

  @Injectable()
  class ByProperty implements Knows {
    @Inject(SessionContext) readonly context!: SessionContext;
  }

  @Injectable({ scope: Scope.REQUEST })
  class OfRequestOnly implements Knows {
    constructor(@Inject(SessionContext) readonly context: SessionContext) {}
  }

  @Injectable()
  class KnowingGuard implements CanActivate {
    constructor(@Inject(SessionContext) private readonly context: SessionContext) {}

    canActivate(): boolean {
      this.context.session.setAttribute('seen', true);
      return true;
    }
  }

  @Controller()
  @UseGuards(KnowingGuard)
  class Guarded {
    @Get('seen')
    seen() {
      return true;
    }
  }

  @Controller()
  class Seen {
    constructor(@Inject('service') private readonly service: Knows) {}

    @Get('seen')
    seen() {
      this.service.context.session.setAttribute('seen', true);
    }
  }

  @Injectable()
  class KnowingMiddleware implements NestMiddleware {
    constructor(@Inject(SessionContext) private readonly context: SessionContext) {}

    use(_: unknown, __: unknown, next: () => void): void {
      this.context.session.setAttribute('seen', true);
      next();
    }
  }

  @Module({})
  class MiddlewareModule implements NestModule {
    configure(consumer: MiddlewareConsumer): void {
      consumer.apply(KnowingMiddleware).forRoutes('*path');
    }
  }

  @Injectable()
  class WithBrowserSessions {
    constructor(@Inject(BrowserSessions) readonly sessions: BrowserSessions) {}
  }

  const service = (useClass: Type) => ({ controllers: [Seen], providers: [{ provide: 'service', useClass }] });

  it.each<[string, Partial<SessionAppOptions>]>([
    ['the constructor of a provider', service(ByConstructor)],
    ['a property of a provider', service(ByProperty)],
    ['a request-scoped provider', service(OfRequestOnly)],
    [
      'a factory',
      {
        controllers: [Seen],
        providers: [
          {
            provide: 'service',
            inject: [SessionContext],
            useFactory: (context: SessionContext): Knows => ({ context }),
          },
        ],
      },
    ],
    ['a guard', { controllers: [Guarded] }],
    ['a middleware class', { imports: [MiddlewareModule] }],
  ])('is known where something injects SessionContext: %s', async (_, options) => {
    const { store, agent } = await startApp(options as SessionAppOptions);
    expect((await agent().get('/seen')).setCookies).toHaveLength(1);
    expect(store.calls).toEqual(['create']);
  });

  it('is known where something injects BrowserSessions', async () => {
    const { app } = await startApp({ providers: [WithBrowserSessions] });
    expect(app.get(SessionContext).isActive).toBe(false);
  });

  it('is not known otherwise, and the error says what to do', async () => {
    const { app } = await startApp({ controllers });
    for (const read of [
      () => app.get(SessionContext).session,
      () => app.get(SessionContext).isActive,
      () => app.get(SessionContext).isAvailable,
      () => app.get(BrowserSessions).currentAlias,
    ]) {
      expect(read).toThrow(SessionStateError);
      expect(read).toThrow(/Inject it into a provider of the application, also if you get it from ModuleRef/);
    }
  });

  it('is known to whoever gets it from the application, where a factory injects it', async () => {
    const { app, agent } = await startApp({
      providers: [{ provide: 'known', inject: [SessionContext], useFactory: () => true }],
      configure: (each) =>
        void each.use((_: unknown, __: unknown, next: () => void) => {
          each.get(SessionContext).session.setAttribute('seen', true);
          next();
        }),
    });
    expect(app.get(SessionContext).isActive).toBe(false);
    expect((await agent().get('/')).setCookies).toHaveLength(1);
  });
});
