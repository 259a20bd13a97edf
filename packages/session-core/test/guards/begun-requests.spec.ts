import { jest } from '@jest/globals';
import {
  Body,
  type CallHandler,
  type CanActivate,
  Controller,
  type ExecutionContext,
  ForbiddenException,
  Get,
  Inject,
  type NestInterceptor,
  Post,
  type Provider,
  Scope,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { APP_INTERCEPTOR } from '@nestjs/core';
import { beginRequest, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, ManualClock } from '@nest-session/testing';
import { defer, switchMap } from 'rxjs';
import { Authenticated, CsrfGuard, CsrfToken, RecentlyAuthenticated, Session, Sessions } from '../../src/index.js';
import { PRINCIPAL_ATTRIBUTE, storePrimitivesOf } from '../../src/internal.js';
import { GatedRepository } from '../support/gated.repository.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);
afterEach(() => {
  jest.restoreAllMocks();
});

const HOUR = 3_600_000;

/** As an application writes it. */
class OwnGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<{ session: Session }>();
    return request.session.principalName !== undefined;
  }
}

const PATHS_OF_UPLOADS = ['/picture', '/pay', '/note'];

/** Takes as long as the client does, as one that takes an upload. */
class UploadInterceptor implements NestInterceptor {
  static begun = 0;
  static finish: () => void = () => undefined;

  intercept(context: ExecutionContext, next: CallHandler) {
    if (!PATHS_OF_UPLOADS.includes(context.switchToHttp().getRequest<{ url: string }>().url)) return next.handle();
    UploadInterceptor.begun++;
    return defer(() => new Promise<void>((resolve) => (UploadInterceptor.finish = resolve))).pipe(
      switchMap(() => next.handle()),
    );
  }
}

@Controller()
class BankController {
  constructor(@Inject(Sessions) private readonly sessions: Sessions) {}

  @Post('login')
  login(@Session() session: Session) {
    session.signIn('ann');
    return { id: session.id };
  }

  @Post('login/bob')
  loginAsBob(@Session() session: Session) {
    session.signIn('bob');
  }

  @Post('rotate')
  rotate(@Session() session: Session) {
    return { id: session.changeSessionId() };
  }

  @Post('logout')
  logout(@Session() session: Session) {
    session.signOut();
  }

  @Post('others')
  async others(@Session() session: Session) {
    return { ended: await this.sessions.endAll('ann', { except: session }) };
  }

  @Post('new-password')
  async newPassword(@Session() session: Session) {
    session.signIn('ann');
    return { ended: await this.sessions.endAll('ann', { except: session }) };
  }

  @Get('form')
  form(@CsrfToken() token: string) {
    return { token };
  }

  @Post('pay')
  @Authenticated()
  pay(@Session() session: Session, @Body('amount') amount: number) {
    return { paid: amount, by: session.principalName };
  }

  @Post('password')
  @RecentlyAuthenticated('5m')
  password(@Session() session: Session) {
    return { by: session.principalName };
  }

  @Post('transfer')
  @UseGuards(CsrfGuard)
  transfer() {
    return { is: 'transferred' };
  }

  @Post('order')
  @UseGuards(OwnGuard)
  order(@Session() session: Session) {
    return { by: session.principalName };
  }

  @Post('note')
  note(@Session() session: Session) {
    if (session.principalName === undefined) throw new ForbiddenException();
    return { by: session.principalName };
  }

  @Post('picture')
  @Authenticated()
  @UseInterceptors(UploadInterceptor)
  picture() {
    return { is: 'stored' };
  }

  @Post('both')
  @Authenticated()
  @UseGuards(CsrfGuard)
  both() {
    return { is: 'done' };
  }
}

/** Middleware of the application that gives each session another id, where a request asks for it. */
function rotateEach(request: { session: Session; headers: Record<string, unknown> }, _: unknown, next: () => void) {
  if (request.headers['x-rotate']) request.session.changeSessionId();
  next();
}

/** By the clock of the process, which decides how old a load is. */
function letTimePass(milliseconds: number): void {
  const now = performance.now.bind(performance);
  jest.spyOn(performance, 'now').mockImplementation(() => now() + milliseconds);
}

describe.each(['express', 'fastify'] as const)('a request on %s that began before', (platform) => {
  async function start(providers: Provider[] = []) {
    const time = new ManualClock();
    const store = new GatedRepository({ clock: time, absoluteTimeout: 3600 });
    const session = { absoluteTimeout: '1h', touchInterval: '1h', timeout: '2h' };
    const { app, agent } = await startApp({
      platform,
      store,
      session,
      controllers: [BankController],
      providers,
      configure: (nest) => nest.use(rotateEach),
    });
    const ann = agent();
    const { id } = (await ann.post('/login')).json<{ id: string }>();
    const loads = () => store.calls.filter((call) => call === 'load').length;
    /** Begins a request, and returns what sends the rest, a second after its session was loaded. */
    const begin = async (path: string, as: HttpAgent = ann, headers?: Record<string, string>) => {
      const before = loads();
      const finish = beginRequest(as, path, headers);
      await eventually(() => expect(loads()).toBe(before + 1));
      return async () => {
        letTimePass(1001);
        store.calls.length = 0;
        return finish();
      };
    };
    const csrf = async () => ({ 'X-CSRF-Token': (await ann.get('/form')).json<{ token: string }>().token });
    return { sessions: app.get(Sessions), store, time, agent, ann, id, begin, csrf };
  }

  const STRANGER = { status: 401, body: expect.objectContaining({ reason: 'not-authenticated' }) as unknown };

  type App = Awaited<ReturnType<typeof start>>;
  const ENDS: readonly [string, (app: App) => unknown][] = [
    ['a sign-out in another tab', ({ ann }) => ann.post('/logout')],
    ['end()', ({ sessions, id }) => sessions.end(id)],
    ['endAll()', ({ sessions }) => sessions.endAll('ann')],
    ['endEverySession()', ({ sessions }) => sessions.endEverySession()],
    ['the absolute timeout', ({ time }) => time.advance(HOUR)],
    [
      'the end of a session that another tab had rotated',
      async ({ ann }) => {
        await ann.post('/rotate');
        await ann.post('/logout');
      },
    ],
  ];

  it.each(ENDS.flatMap(([name, end]) => ['/pay', '/password'].map((path) => ({ name, end, path }))))(
    '$name is refused after it: $path',
    async ({ end, path }) => {
      const app = await start();
      const finish = await app.begin(path);
      await end(app);
      expect(await finish()).toEqual(STRANGER);
    },
  );

  it.each(['/order', '/note'])(
    'a sign-out is refused after it, where the application decides itself: %s',
    async (path) => {
      const { ann, begin } = await start();
      const finish = await begin(path);
      await ann.post('/logout');
      expect(await finish()).toEqual(STRANGER);
      expect((await ann.post(path, {})).status).toBe(403);
    },
  );

  it('a sign-out is refused after an upload that an interceptor of the application has taken', async () => {
    const { ann, sessions } = await start();
    for (const isEnded of [false, true]) {
      const before = UploadInterceptor.begun;
      const response = ann.post('/picture', {});
      await eventually(() => UploadInterceptor.begun > before);
      if (isEnded) await sessions.endAll('ann');
      letTimePass(1001);
      UploadInterceptor.finish();
      expect((await response).status).toBe(isEnded ? 401 : 201);
      jest.restoreAllMocks();
    }
  });

  it.each([
    ['for all requests', '/pay', Scope.DEFAULT],
    ['for all requests', '/note', Scope.DEFAULT],
    ['of the request', '/pay', Scope.REQUEST],
    ['of the request', '/note', Scope.REQUEST],
    ['of its own', '/pay', Scope.TRANSIENT],
  ] as const)(
    'a sign-out is refused after an upload that a global interceptor %s has taken: %s',
    async (_, path, scope) => {
      const { ann, sessions } = await start([{ provide: APP_INTERCEPTOR, useClass: UploadInterceptor, scope }]);
      for (const isEnded of [false, true]) {
        const before = UploadInterceptor.begun;
        const response = ann.post(path, {});
        await eventually(() => UploadInterceptor.begun > before);
        if (isEnded) await sessions.endAll('ann');
        letTimePass(1001);
        UploadInterceptor.finish();
        expect((await response).status).toBe(isEnded ? 401 : 201);
        jest.restoreAllMocks();
      }
    },
  );

  it.each([...ENDS, ['a sign-in as bob', ({ ann }) => ann.post('/login/bob')] as (typeof ENDS)[number]])(
    '%s is refused after it, also where middleware has given the session another id',
    async (_name, end) => {
      for (const path of ['/pay', '/order', '/note']) {
        const app = await start();
        const finish = await app.begin(path, app.ann, { 'X-Rotate': '1' });
        await end(app);
        expect(await finish()).toEqual(STRANGER);
        jest.restoreAllMocks();
      }
    },
  );

  it('nothing else is answered, where middleware has given its session another id', async () => {
    const { ann, begin } = await start();
    const headers = { 'X-Rotate': '1' };
    expect((await (await begin('/pay', ann, headers))()).status).toBe(201);
    jest.restoreAllMocks();
    await ann.post('/login');
    expect((await ann.post('/pay', {}, { headers })).status).toBe(201);
    expect((await ann.post('/pay', {})).status).toBe(201);
  });

  it.each(['/others', '/new-password'])(
    'its user ended all other sessions is refused, and the user goes on: %s',
    async (path) => {
      for (const late of ['/pay', '/order', '/note', '/password']) {
        const { ann, begin, agent } = await start();
        const thief = agent();
        thief.setCookie(`SESSION=${ann.cookie('SESSION')}; Path=/`);
        const finish = await begin(late, thief);
        expect((await ann.post(path, {})).json()).toEqual({ ended: 0 });
        expect(await finish()).toEqual(STRANGER);
        jest.restoreAllMocks();
        expect((await ann.post('/pay', {})).status).toBe(201);
        expect((await thief.post('/pay', {})).status).toBe(401);
      }
    },
  );

  it('a rotation of its session by the same user is answered', async () => {
    const { ann, begin } = await start();
    for (const [path, rotation] of [
      ['/pay', '/rotate'],
      ['/pay', '/login'],
      ['/password', '/rotate'],
    ] as const) {
      const finish = await begin(path);
      await ann.post(rotation);
      expect(await finish()).toMatchObject({ status: 201, body: { by: 'ann' } });
      jest.restoreAllMocks();
    }
  });

  it.each([null, 'bob'])('its session became that of %j under the same id is refused', async (name) => {
    const { ann, begin, store } = await start();
    const { id } = (await ann.post('/rotate')).json<{ id: string }>();
    const finish = await begin('/pay');
    const attributes = new Map([[PRINCIPAL_ATTRIBUTE, name && JSON.stringify(name)]]);
    await storePrimitivesOf(store).write({ kind: 'update', id, attributes, indexes: new Map() });
    expect(await finish()).toEqual(STRANGER);
  });

  it('costs one more load where its session was loaded more than a second ago, and nothing else', async () => {
    const { ann, store, begin, csrf } = await start();
    const headers = await csrf();
    for (const path of ['/pay', '/transfer', '/both', '/order', '/note']) {
      const slow = await begin(path, ann, headers);
      expect((await slow()).status).toBe(201);
      expect(store.calls).toEqual(['load']);
      jest.restoreAllMocks();
      store.calls.length = 0;
      expect((await ann.post(path, {}, { headers })).status).toBe(201);
      expect(store.calls).toEqual(['load']);
    }
  });

  it('and whose session cannot be looked up again gets a 503', async () => {
    const { ann, store, begin, csrf } = await start();
    const headers = await csrf();
    for (const path of ['/pay', '/password', '/transfer', '/both']) {
      const finish = await begin(path, ann, headers);
      store.break('load');
      expect((await finish()).status).toBe(503);
      store.repair();
      jest.restoreAllMocks();
    }
  });

  it('and passes CsrfGuard is refused when its session has ended, and not when it was rotated', async () => {
    const { ann, begin, csrf } = await start();
    const headers = await csrf();
    const late = await begin('/transfer', ann, headers);
    await ann.post('/rotate');
    expect((await late()).status).toBe(201);
    jest.restoreAllMocks();
    const ended = await begin('/transfer', ann, await csrf());
    await ann.post('/logout');
    expect(await ended()).toEqual(STRANGER);
  });
});
