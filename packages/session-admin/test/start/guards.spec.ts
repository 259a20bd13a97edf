import {
  type CanActivate,
  type DynamicModule,
  Inject,
  Injectable,
  Module,
  Scope,
  UnauthorizedException,
  UseGuards,
  VersioningType,
  Controller,
  Get,
} from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { InvalidSessionOptionsError, MapSessionModule, SessionModule } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent } from '@nest-session/testing';
import { of } from 'rxjs';
import { scopeOf } from '../../src/access/admin.guards.js';
import { SessionAdminModule, type SessionAdminModuleOptions } from '../../src/index.js';
import { AdminApp, AdminGuard, Administrators, closeApps, PATH, PLATFORMS } from '../support/admin.app.js';

LeakGuard.install();
afterEach(closeApps);

/** Starts an application with options that may be wrong. */
async function start(
  options: object | undefined,
  stores: DynamicModule[] = [SessionModule.forRoot(), MapSessionModule.forRoot()],
): Promise<void> {
  class AppModule {}
  const admin: DynamicModule = SessionAdminModule.forRoot(options as SessionAdminModuleOptions);
  const imports = [...stores, admin];
  const app = await NestFactory.create(
    { module: AppModule, imports, providers: [Administrators] },
    { logger: false, abortOnError: false },
  );
  await app.init();
  await app.close();
}

it('the application does not start where there is nothing to show', async () => {
  await expect(start({ path: 'admin', guards: 'none' }, [])).rejects.toThrow(
    'SessionAdminModule: There are no sessions to show, and no deadlines: add SessionModule.forRoot()',
  );
});

describe('the options', () => {
  it.each([{ options: { path: 'admin' } }, { options: { path: 'admin', guards: undefined } }])(
    'the application does not start without guards: $options',
    async ({ options }) => {
      const start_ = start(options);
      await expect(start_).rejects.toThrow(InvalidSessionOptionsError);
      await expect(start_).rejects.toThrow(
        'SessionAdminModule: Option `guards` is missing: without guards everybody could end the sessions of your users. ' +
          'Name the guards of your application that let administrators in, as in guards: [AdminGuard], or write ' +
          "guards: 'none' if global guards or your network do so.",
      );
    },
  );

  it.each([
    { guards: [] },
    { guards: null },
    { guards: 'all' },
    { guards: AdminGuard },
    { guards: [AdminGuard, {}] },
    { guards: [() => true] },
  ])('the application does not start with what is no guards: $guards', async ({ guards }) => {
    await expect(start({ path: 'admin', guards })).rejects.toThrow(
      "SessionAdminModule: Option `guards` must be an array of guards, as @UseGuards() takes them, or 'none'.",
    );
  });

  it.each([undefined, '', '/', 'a b', ':tenant/admin', 'admin/*rest', '..', 'admin/../x', '<b>'])(
    'the application does not start with the path %s',
    async (path) => {
      const problems = [expect.stringMatching(/^Option `path` (is missing|must be)/)];
      await expect(start({ path, guards: 'none' })).rejects.toMatchObject({
        name: 'InvalidSessionOptionsError',
        problems,
      });
    },
  );

  it.each(['access', 'by', 'values', 'data'])('the application does not start when %s is no function', async (name) => {
    const options = { path: 'admin', guards: 'none', [name]: 'read' };
    await expect(start(options)).rejects.toThrow(`SessionAdminModule: Option \`${name}\` must be a function.`);
  });

  it('all problems are named at once, and unknown options', async () => {
    const start_ = start({ paht: 'admin', access: 1 });
    await expect(start_).rejects.toThrow(/`path` is missing.*`guards` is missing.*`access` must be.*`paht`/);
  });

  it('a module that is imported as a class says what to write', async () => {
    class AppModule {}
    const app = NestFactory.create(
      { module: AppModule, imports: [SessionModule.forRoot(), MapSessionModule.forRoot(), SessionAdminModule] },
      { logger: false, abortOnError: false },
    );
    await expect(app).rejects.toThrow('write SessionAdminModule.forRoot({ path, guards })');
  });

  it("the log warns of guards: 'none'", async () => {
    const app = await AdminApp.start({ admin: { guards: 'none' } });
    expect((await app.agent().get(`${PATH}/overview`)).status).toBe(200);
    const [warning, ...others] = app.log.matching(/SessionAdmin/).filter((line) => line.startsWith('warn'));
    expect(others).toEqual([]);
    expect(warning).toContain('The admin of sessions at "operations/sessions" has no guards of its own');
  });

  it('the log warns of nothing where there are guards', async () => {
    const app = await AdminApp.start();
    expect(app.log.matching(/^warn/)).toEqual([]);
  });
});

/** Refuses everybody, and asynchronously. */
@Injectable()
class NobodyGuard implements CanActivate {
  canActivate() {
    return of(false);
  }
}

const nobody: CanActivate = { canActivate: () => Promise.resolve(false) };

const ROUTES = [
  ['GET', ''],
  ['GET', '/files/page.js'],
  ['GET', '/overview'],
  ['GET', '/sessions?username=bob'],
  ['GET', '/sessions/abcdefghijklmnopqrstuvwx'],
  ['DELETE', '/sessions/abcdefghijklmnopqrstuvwx'],
  ['DELETE', '/sessions?username=bob'],
  ['GET', '/groups'],
  ['DELETE', '/groups?of=sessions&name=default'],
  ['GET', '/dead-letters'],
  ['POST', '/dead-letters/replay'],
  ['DELETE', '/dead-letters'],
  ['POST', '/dead-letters/sessions:1-0-0/replay'],
  ['DELETE', '/dead-letters/sessions:1-0-0'],
  ['GET', '/deadlines'],
  ['DELETE', '/deadlines?name=a&key=b'],
] as const;

describe.each(PLATFORMS)('the guards on %s', (platform) => {
  it.each(ROUTES)('let in only whom they let in: %s %s', async (method, path) => {
    const app = await AdminApp.start({ platform });
    const bob = (await app.signIn('bob')).agent;
    expect((await app.agent().request(method, PATH + path)).status).toBe(401);
    expect((await bob.request(method, PATH + path)).status).toBe(403);
    const { status } = await (await app.admin()).request(method, PATH + path);
    expect([401, 403]).not.toContain(status);
  });

  it.each([
    { what: 'a class', guard: NobodyGuard },
    { what: 'an instance', guard: nobody },
  ])('all of them must let somebody in: $what', async ({ guard }) => {
    const app = await AdminApp.start({ platform, admin: { guards: [AdminGuard, guard] } });
    const response = await (await app.admin()).get(`${PATH}/overview`);
    expect(response.json()).toMatchObject({ statusCode: 403, reason: 'admin-not-allowed' });
  });

  it('global guards come first', async () => {
    const calls: string[] = [];
    const guard = (name: string, isOpen: boolean): CanActivate => ({
      canActivate: () => {
        calls.push(name);
        return isOpen;
      },
    });
    const app = await AdminApp.start({
      platform,
      admin: { guards: [guard('own', false)] },
      providers: [{ provide: APP_GUARD, useValue: guard('global', true) }],
    });
    expect((await app.agent().get(`${PATH}/overview`)).status).toBe(403);
    expect(calls).toEqual(['global', 'own']);
  });
});

describe('what a guard injects', () => {
  @Injectable()
  class Users {
    readonly open = true;
  }

  @Injectable()
  class UsersGuard implements CanActivate {
    constructor(@Inject(Users) private readonly users: Users) {}

    canActivate() {
      return this.users.open;
    }
  }

  @Module({ providers: [Users], exports: [Users] })
  class UsersModule {}

  it('comes from what the importing module imports', async () => {
    const app = await AdminApp.start({ admin: { guards: [UsersGuard] }, imports: [UsersModule] });
    expect((await app.agent().get(`${PATH}/overview`)).status).toBe(200);
  });

  it('comes from where the application provides the guard', async () => {
    const providing = { module: class GuardModule {}, imports: [UsersModule], providers: [UsersGuard] };
    const app = await AdminApp.start({ admin: { guards: [UsersGuard] }, imports: [providing] });
    expect((await app.agent().get(`${PATH}/overview`)).status).toBe(200);
  });

  it('fails the start, with what to do, when nothing provides it', async () => {
    const start_ = AdminApp.start({ admin: { guards: [UsersGuard] } });
    await expect(start_).rejects.toThrow(InvalidSessionOptionsError);
    await expect(start_).rejects.toThrow(
      /^SessionAdminModule: Option `guards` has UsersGuard, which Nest cannot inject/,
    );
  });

  it('a class that is no guard fails the start', async () => {
    class NoGuard {}
    const start_ = AdminApp.start({ admin: { guards: [NoGuard as never] } });
    await expect(start_).rejects.toThrow(/has NoGuard, .* Nest says: It has no method canActivate\(\)/);
  });

  it('a guard may define its method in its constructor', async () => {
    class ArrowGuard implements CanActivate {
      readonly canActivate = () => true;
    }
    const app = await AdminApp.start({ admin: { guards: [ArrowGuard] } });
    expect((await app.agent().get(`${PATH}/overview`)).status).toBe(200);
  });

  it('a request-scoped guard fails the start', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class ScopedGuard implements CanActivate {
      canActivate() {
        return true;
      }
    }
    const providers = [ScopedGuard];
    await expect(AdminApp.start({ admin: { guards: [ScopedGuard] }, providers })).rejects.toThrow(
      /neither request-scoped/,
    );
    await expect(AdminApp.start({ admin: { guards: [ScopedGuard] } })).rejects.toThrow(/neither request-scoped/);
  });

  it('no guard has a scope that Nest does not tell', () => {
    expect(scopeOf(AdminGuard)).toBe(Scope.DEFAULT);
    expect(() => scopeOf(AdminGuard, () => () => undefined)).toThrow('This version of Nest does not tell its scope');
  });

  it('a test replaces a guard that the application provides or uses', async () => {
    @Controller('other')
    @UseGuards(RefusingGuard)
    class OtherController {
      @Get()
      show() {
        return 'other';
      }
    }
    const testing = await Test.createTestingModule({
      imports: [
        SessionModule.forRoot(),
        MapSessionModule.forRoot(),
        SessionAdminModule.forRoot({ path: 'admin', guards: [RefusingGuard] }),
      ],
      controllers: [OtherController],
    })
      .overrideGuard(RefusingGuard)
      .useValue({ canActivate: () => true })
      .compile();
    const app = testing.createNestApplication();
    const agent = await HttpAgent.for(app);
    expect((await agent.get('/admin/overview')).status).toBe(200);
    await app.close();
  });
});

@Injectable()
class RefusingGuard implements CanActivate {
  canActivate(): boolean {
    throw new UnauthorizedException();
  }
}

it('two admins of one application have their own guards and paths', async () => {
  const app = await AdminApp.start({
    imports: [SessionAdminModule.forRoot({ path: 'open', guards: 'none', access: () => 'read' })],
  });
  expect((await app.agent().get(`${PATH}/overview`)).status).toBe(401);
  expect((await app.agent().get('/open/overview')).json()).toMatchObject({ rights: { end: false } });
  expect((await (await app.admin()).get(`${PATH}/overview`)).json()).toMatchObject({ rights: { end: true } });
});

describe.each(PLATFORMS)("guards: 'none' behind a rule for the path, on %s", (platform) => {
  // Fastify takes the first three only with these options.
  const loose = { ignoreDuplicateSlashes: true, caseSensitive: false, useSemicolonDelimiter: true };

  it.each<[string, Parameters<typeof AdminApp.start>[0] & object, string]>([
    ['without a prefix', {}, PATH],
    ['with a global prefix', { configure: (nest) => nest.setGlobalPrefix('api/shop') }, `/api/shop${PATH}`],
    [
      'with versions',
      { configure: (nest) => nest.setGlobalPrefix('api').enableVersioning({ type: VersioningType.URI }) },
      `/api${PATH}`,
    ],
  ])('takes no other spelling of it, %s', async (_, options, path) => {
    const adapter = platform === 'Fastify' ? new FastifyAdapter({ routerOptions: loose }) : undefined;
    const { origin } = await AdminApp.start({ platform, admin: { guards: 'none' }, adapter, ...options });
    const agent = new HttpAgent(origin);
    for (const suffix of ['', '/overview', '/overview?username=ann', '/sessions?username=a%2fb', '/files/page.js'])
      expect([suffix, (await agent.get(path + suffix)).status]).toEqual([suffix, 200]);
    expect((await agent.request('HEAD', `${path}/overview`)).status).toBe(200);
    expect((await agent.get(`${path}/overview/`)).status).toBe(platform === 'Express' ? 200 : 404);
    const others = [
      path.toUpperCase(),
      path.replace('operations', 'Operations'),
      path.replace('/s', '/%73'),
      path.replace('op', '%6fp'),
      path.replace('op', '%6Fp'),
      `/${path}`,
      path.replace('/sessions', '//sessions'),
      path.replace('/sessions', ';x=1/sessions'),
      path.replace('operations', './operations'),
    ];
    for (const other of others) {
      for (const suffix of ['', '/overview', '/files/page.js'])
        expect([other, (await agent.get(other + suffix)).status]).toEqual([other, 404]);
      expect([other, (await agent.request('DELETE', `${other}/deadlines`)).status]).toEqual([other, 404]);
    }
    for (const end of ['/Overview', '/overv%69ew', '//overview', ';x=1'])
      expect([end, (await agent.get(path + end)).status]).toEqual([end, 404]);
  });
});

it('with guards, the platform decides about the spelling', async () => {
  const admin = await AdminApp.start({ admin: { guards: [{ canActivate: () => true }] } });
  expect((await new HttpAgent(admin.origin).get(`${PATH.toUpperCase()}/overview`)).status).toBe(200);
});
