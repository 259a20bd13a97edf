import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  Post,
  type Type,
  UseGuards,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { type HttpAgent, ManualClock } from '@nest-session/testing';
import {
  Authenticated,
  AuthenticatedGuard,
  Public,
  RecentlyAuthenticated,
  Session,
  SessionOutagePolicy,
} from '../../src/index.js';
import { GatedRepository, STORE_FAILURE } from '../support/gated.repository.js';
import { closeApps, type SessionApp, type SessionAppOptions, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

const MINUTE = 60_000;

const STRANGER = { statusCode: 401, message: 'Sign in first', error: 'Unauthorized', reason: 'not-authenticated' };
const TOO_OLD = {
  statusCode: 401,
  message: 'Sign in again',
  error: 'Unauthorized',
  reason: 'not-recently-authenticated',
  maxAge: 300,
};

/** Tells how often its clock was asked. */
class SignInRepository extends GatedRepository {
  asked = 0;
  isClockBroken = false;

  constructor(readonly time = new ManualClock()) {
    super({ clock: time });
  }

  protected override async readClock(): Promise<number> {
    this.asked++;
    if (this.isClockBroken) throw STORE_FAILURE;
    return super.readClock();
  }
}

let called: string[] = [];
beforeEach(() => {
  called = [];
});

/** Only wants to know whether somebody is signed in, and lets everybody pass. */
@Injectable()
class Asks implements CanActivate {
  constructor(@Inject(AuthenticatedGuard) private readonly guard: AuthenticatedGuard) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    try {
      await this.guard.canActivate(context);
    } catch {
      called.push('a stranger');
    }
    return true;
  }
}

/** Notes that it was called, and refuses everybody. */
@Injectable()
class Refuses implements CanActivate {
  canActivate(): boolean {
    called.push('Refuses');
    return false;
  }
}

@Controller()
class AccountController {
  @Post('login')
  login(@Session() session: Session) {
    session.signIn('ann');
  }

  /** The name is known, and no sign-in. */
  @Post('import')
  importOld(@Session() session: Session) {
    session.principalName = 'ann';
  }

  @Post('visit')
  visit(@Session() session: Session) {
    session.setAttribute('visits', 1);
  }

  @Post('logout')
  logout(@Session() session: Session) {
    session.invalidate();
  }

  @Get('open')
  open() {
    return { is: 'open' };
  }

  @Get('orders')
  @Authenticated()
  orders() {
    called.push('orders');
    return { is: 'orders' };
  }

  @Get('password')
  @RecentlyAuthenticated('5m')
  password() {
    return { is: 'password' };
  }

  @Get('above')
  @Authenticated()
  @UseGuards(Refuses)
  above() {}

  @Get('below')
  @UseGuards(Refuses)
  @Authenticated()
  below() {}

  @Get('offline')
  @Authenticated()
  @SessionOutagePolicy('anonymous')
  offline() {
    return { is: 'offline' };
  }
}

@Controller('closed')
@Authenticated()
class ClosedController {
  @Get()
  closed() {
    return { is: 'closed' };
  }

  @Get('public')
  @Public()
  open() {
    return { is: 'public' };
  }

  @Get('recent')
  @RecentlyAuthenticated('5m')
  recent() {
    return { is: 'recent' };
  }
}

@Controller('recent')
@RecentlyAuthenticated('5m')
class RecentController {
  @Get()
  recent() {
    return { is: 'recent' };
  }

  @Get('any')
  @Authenticated()
  any() {
    return { is: 'any' };
  }
}

@Controller('public')
@Public()
class PublicController {
  @Get()
  open() {
    return { is: 'public' };
  }

  @Get('closed')
  @Authenticated()
  closed() {
    return { is: 'closed' };
  }
}

/** The same guard, under another name. */
@Injectable()
class MemberGuard extends AuthenticatedGuard {}

@Controller('named')
@Public()
class NamedController {
  @Get()
  @UseGuards(AuthenticatedGuard)
  named() {
    return { is: 'named' };
  }

  @Get('also-public')
  @Public()
  @UseGuards(MemberGuard)
  alsoPublic() {
    return { is: 'named' };
  }
}

@Controller('named-recent')
@RecentlyAuthenticated('5m')
class NamedRecentController {
  @Get()
  @UseGuards(AuthenticatedGuard)
  recent() {
    return { is: 'recent' };
  }
}

@Controller('derived')
class DerivedController extends ClosedController {
  @Get('more')
  more() {
    return { is: 'more' };
  }
}

const CONTROLLERS: Type[] = [
  AccountController,
  ClosedController,
  RecentController,
  PublicController,
  NamedController,
  NamedRecentController,
  DerivedController,
];

interface GuardedApp extends SessionApp {
  readonly store: SignInRepository;
  /** Signed in. */
  readonly ann: HttpAgent;
}

async function start(options: SessionAppOptions = {}): Promise<GuardedApp> {
  const store = new SignInRepository();
  const app = await startApp({ controllers: CONTROLLERS, store, ...options });
  const ann = app.agent();
  await ann.post('/login');
  return { ...app, store, ann };
}

/** The status of the response, or what it says. */
async function said(agent: HttpAgent, path: string): Promise<unknown> {
  const response = await agent.get(path);
  return response.status === 200 ? response.json<{ is: string }>().is : response.status;
}

describe.each(['express', 'fastify'] as const)('on %s', (platform) => {
  it('@Authenticated() lets a signed-in user pass, and answers 401 to everybody else', async () => {
    const { ann, store, agent } = await start({ platform });
    const visitor = agent();
    await visitor.post('/visit');
    expect(await said(ann, '/orders')).toBe('orders');
    called = [];
    store.calls.length = 0;
    for (const stranger of [agent(), visitor]) {
      const { status, headers, setCookies, json } = await stranger.get('/orders');
      expect({ status, vary: headers['vary'], setCookies, body: json() }).toEqual({
        status: 401,
        vary: 'Cookie',
        setCookies: [],
        body: STRANGER,
      });
    }
    // The visitor's session was loaded; a request without a token costs no call.
    expect([called, store.calls]).toEqual([[], ['load']]);
    await ann.post('/logout');
    expect(await said(ann, '/orders')).toBe(401);
  });

  it('tells caches that a response depends on the session, although the handler does not use it', async () => {
    const { ann } = await start({ platform });
    expect((await ann.get('/orders')).headers['vary']).toBe('Cookie');
    expect((await ann.get('/open')).headers['vary']).toBeUndefined();
  });

  it('@RecentlyAuthenticated() answers 401 with a reason when the sign-in is too old by the clock of the store', async () => {
    const { ann, store, agent } = await start({ platform });
    store.time.advance(5 * MINUTE);
    expect(await said(ann, '/password')).toBe('password');
    store.time.advance(1);
    const response = await ann.get('/password');
    expect([response.status, response.json()]).toEqual([401, TOO_OLD]);
    expect(await said(ann, '/orders')).toBe('orders');
    expect((await agent().get('/password')).json()).toEqual({ ...STRANGER, maxAge: 300 });
    await ann.post('/logout');
    await ann.post('/login');
    expect(await said(ann, '/password')).toBe('password');
  });

  it('@RecentlyAuthenticated() refuses a session that does not tell when its user signed in', async () => {
    const { agent, store } = await start({ platform });
    const imported = agent();
    await imported.post('/import');
    expect((await imported.get('/password')).json()).toEqual(TOO_OLD);
    expect(await said(imported, '/orders')).toBe('orders');
    expect(store.asked).toBe(0);
  });

  it.each([
    { path: '/closed', stranger: 401, ann: 'closed', later: 'closed' },
    { path: '/closed/public', stranger: 'public', ann: 'public', later: 'public' },
    { path: '/closed/recent', stranger: 401, ann: 'recent', later: 401 },
    { path: '/recent', stranger: 401, ann: 'recent', later: 401 },
    { path: '/recent/any', stranger: 401, ann: 'any', later: 'any' },
    { path: '/public', stranger: 'public', ann: 'public', later: 'public' },
    { path: '/public/closed', stranger: 401, ann: 'closed', later: 'closed' },
    { path: '/named', stranger: 401, ann: 'named', later: 'named' },
    { path: '/named/also-public', stranger: 401, ann: 'named', later: 'named' },
    { path: '/named-recent', stranger: 401, ann: 'recent', later: 401 },
    { path: '/derived', stranger: 401, ann: 'closed', later: 'closed' },
    { path: '/derived/more', stranger: 401, ann: 'more', later: 'more' },
    { path: '/derived/public', stranger: 'public', ann: 'public', later: 'public' },
  ])('the decorator of a handler replaces that of its class: $path', async ({ path, stranger, ann, later }) => {
    const app = await start({ platform });
    expect([await said(app.agent(), path), await said(app.ann, path)]).toEqual([stranger, ann]);
    app.store.time.advance(6 * MINUTE);
    expect(await said(app.ann, path)).toBe(later);
  });

  it('the guard of all routes is for signed-in users, and @Public() and the other decorators are exceptions', async () => {
    const providers = [{ provide: APP_GUARD, useExisting: AuthenticatedGuard }];
    @Controller('sign-in')
    class SignInController {
      @Post()
      @Public()
      signIn(@Session() session: Session) {
        session.signIn('ann');
      }
    }
    const { agent, store } = await start({ platform, providers, controllers: [...CONTROLLERS, SignInController] });
    expect(await said(agent(), '/open')).toBe(401);
    expect(await said(agent(), '/public')).toBe('public');
    expect(await said(agent(), '/public/closed')).toBe(401);
    const ann = agent();
    expect((await ann.post('/sign-in')).status).toBe(201);
    expect(await said(ann, '/open')).toBe('open');
    // The guards of all routes, of the class and of the handler look once.
    expect([await said(ann, '/closed/recent'), store.asked]).toEqual(['recent', 1]);
    store.time.advance(6 * MINUTE);
    expect([await said(ann, '/closed'), await said(ann, '/closed/recent')]).toEqual(['closed', 401]);
  });

  it('refuses a request again after a guard of the application caught the first refusal', async () => {
    const { ann, agent } = await start({ platform, providers: [{ provide: APP_GUARD, useClass: Asks }] });
    expect([await said(agent(), '/orders'), await said(agent(), '/password')]).toEqual([401, 401]);
    expect(called).not.toContain('orders');
    expect([await said(ann, '/orders'), await said(ann, '/password')]).toEqual(['orders', 'password']);
  });

  it('refuses a request that a late check refuses after a guard of the application caught the refusal', async () => {
    const { ann, store } = await start({ platform, providers: [{ provide: APP_GUARD, useClass: Asks }] });
    store.time.advance(5 * MINUTE + 1);
    called = [];
    for (let visit = 1; visit <= 2; visit++) {
      expect(await said(ann, '/password')).toBe(401);
      expect(called).toHaveLength(visit);
    }
    store.isClockBroken = true;
    expect([await said(ann, '/password'), await said(ann, '/orders')]).toEqual([503, 'orders']);
  });

  it('answers 503 while the store is down, and never 401 to a client that may be signed in', async () => {
    const { ann, agent, store } = await start({ platform });
    store.break('load');
    for (const path of ['/orders', '/password', '/closed', '/offline']) expect(await said(ann, path)).toBe(503);
    expect([await said(ann, '/closed/public'), await said(agent(), '/orders')]).toEqual(['public', 401]);
    store.repair();
    store.isClockBroken = true;
    expect([await said(ann, '/password'), await said(ann, '/orders')]).toEqual([503, 'orders']);
  });

  it('refuses excluded requests, which have no session', async () => {
    const { ann } = await start({ platform, session: { exclude: ({ url }) => url === '/orders' } });
    expect([await said(ann, '/orders'), await said(ann, '/closed')]).toEqual([401, 'closed']);
  });
});

it.each(['/above', '/below'])('runs before the guards of @UseGuards() on the same handler: %s', async (path) => {
  const { ann, agent } = await start();
  expect([await said(agent(), path), called]).toEqual([401, []]);
  expect([await said(ann, path), called]).toEqual([403, ['Refuses']]);
});

it.each([
  ['5', 'is the bare number "5": name its unit'],
  ['soon', 'is not a duration'],
  ['0', 'must be longer than 0'],
  [undefined, 'is not a duration'],
])('@RecentlyAuthenticated(%j) is refused at once', (maxAge, problem) => {
  expect(() => RecentlyAuthenticated(maxAge as string)).toThrow(TypeError);
  expect(() => RecentlyAuthenticated(maxAge as string)).toThrow(problem);
});

describe('several of @Public(), @Authenticated() and @RecentlyAuthenticated()', () => {
  const decorators = [Public(), Authenticated(), RecentlyAuthenticated('5m'), RecentlyAuthenticated('1s')];
  const names = ['@Public()', '@Authenticated()', "@RecentlyAuthenticated('300s')", "@RecentlyAuthenticated('1s')"];
  const pairs = decorators.flatMap((_, upper) =>
    decorators.flatMap((_, lower) => (upper === lower ? [] : [{ upper, lower }])),
  );

  function decorated({ upper, lower }: { readonly upper: number; readonly lower: number }) {
    const both = <T extends object>(...place: [T, string, PropertyDescriptor] | [T]) => {
      for (const each of [lower, upper]) decorators[each]!(...(place as [T, string, PropertyDescriptor]));
    };
    class Account {
      orders() {}
    }
    return {
      onMethod: () => both(Account.prototype, 'orders', Reflect.getOwnPropertyDescriptor(Account.prototype, 'orders')!),
      onClass: () => both(Account),
    };
  }

  it.each(pairs)('are refused where the class is defined: %j', ({ upper, lower }) => {
    const { onMethod, onClass } = decorated({ upper, lower });
    const problem = `has ${names[upper]} and ${names[lower]}: remove one of them`;
    expect(onMethod).toThrow(new TypeError(`Account.orders ${problem}`));
    expect(onClass).toThrow(new TypeError(`Account ${problem}`));
  });

  it('may be the same one twice, as that of a decorator of the application', () => {
    for (const each of [0, 1, 2, 3]) {
      const { onMethod, onClass } = decorated({ upper: each, lower: each });
      expect([onMethod(), onClass()]).toEqual([undefined, undefined]);
    }
  });

  it('may be on a class, the class that it extends, and their handlers', () => {
    @Public()
    class Derived extends ClosedController {
      @Authenticated()
      override recent() {
        return { is: 'recent' };
      }
    }
    expect(Derived.name).toBe('Derived');
  });
});
