import {
  Controller,
  Get,
  Inject,
  Injectable,
  Module,
  type ModuleMetadata,
  type OnModuleInit,
  type Type,
} from '@nestjs/common';
import { HttpAdapterHost, ModuleRef, NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { LeakGuard, LogRecorder } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent } from '@nest-session/testing';
import {
  MapSessionModule,
  Session,
  SessionContext,
  SessionIdResolver,
  SessionModule,
  SessionRepository,
  type SessionModuleOptions,
  type SessionOptionsFactory,
  Sessions,
} from '../../src/index.js';

LeakGuard.install();

@Controller()
class TestController {
  @Get()
  touch(@Session() session: Session) {
    session.setAttribute('a', 1);
    return { interval: session.maxInactiveInterval };
  }
}

@Injectable()
class OptionsService implements SessionOptionsFactory {
  createSessionOptions(): SessionModuleOptions {
    return { timeout: '5m', cookie: { name: 'sid' } };
  }
}

@Module({ providers: [OptionsService], exports: [OptionsService] })
class OptionsModule {}

const silent = { logger: false, abortOnError: false } as const;

function moduleOf(metadata: ModuleMetadata) {
  @Module(metadata)
  class AppModule {}
  return AppModule;
}

/** The message of the error with which an application fails to start. */
async function refusal(metadata: ModuleMetadata): Promise<string> {
  try {
    const app = await NestFactory.create(moduleOf(metadata), silent);
    await app.init();
    await app.close();
    return 'it has started';
  } catch (error) {
    return (error as Error).message;
  }
}

describe('SessionModule', () => {
  const store = MapSessionModule.forRoot();

  it.each([
    ['forRoot()', SessionModule.forRoot(), { interval: 1800 }, 'SESSION'],
    ['useFactory', SessionModule.forRootAsync({ useFactory: async () => ({ timeout: '1m' }) }), { interval: 60 }],
    ['useClass', SessionModule.forRootAsync({ useClass: OptionsService }), { interval: 300 }, 'sid'],
    [
      'useExisting',
      SessionModule.forRootAsync({ imports: [OptionsModule], useExisting: OptionsService }),
      { interval: 300 },
      'sid',
    ],
  ])('is configured by %s', async (_, module, expected, cookie = 'SESSION') => {
    const metadata = { imports: [module, store], controllers: [TestController] };
    const app = await NestFactory.create(moduleOf(metadata), silent);
    await app.listen(0, '127.0.0.1');
    const client = new HttpAgent(await app.getUrl());
    expect((await client.get('/')).json()).toEqual(expected);
    expect(Object.keys(client.cookies)).toEqual([cookie]);
    await app.close();
  });

  it('works with its store imported before or after it, and under @nestjs/testing', async () => {
    for (const imports of [
      [store, SessionModule.forRoot()],
      [SessionModule.forRoot(), store],
    ]) {
      const module = await Test.createTestingModule({ imports, controllers: [TestController] }).compile();
      const app = module.createNestApplication(silent);
      await app.listen(0, '127.0.0.1');
      const client = new HttpAgent(await app.getUrl());
      await client.get('/');
      expect((await client.get('/')).setCookies).toEqual([]);
      await app.close();
    }
  });

  it('serves several applications in one process, each with its own sessions', async () => {
    const apps = await Promise.all(
      [1, 2].map(() => {
        const metadata = {
          imports: [SessionModule.forRoot(), MapSessionModule.forRoot()],
          controllers: [TestController],
        };
        return NestFactory.create(moduleOf(metadata), silent);
      }),
    );
    for (const app of apps) {
      await app.listen(0, '127.0.0.1');
      expect((await new HttpAgent(await app.getUrl()).get('/')).setCookies).toHaveLength(1);
    }
    for (const app of apps) await app.close();
  });

  it('names both store modules when no store is bound', async () => {
    const message = await refusal({ imports: [SessionModule.forRoot()] });
    expect(message).toMatch(/^SessionModule: .*RedisSessionModule.*MapSessionModule.*single process\.$/);
  });

  it('reports an invalid option of the store, not a missing store', async () => {
    const wrong = { clok: Date } as object;
    expect(await refusal({ imports: [SessionModule.forRoot(), MapSessionModule.forRoot(wrong)] })).toMatch(/clok/);
  });

  it.each([
    ['SessionModule', [SessionModule, store]],
    ['MapSessionModule', [SessionModule.forRoot(), MapSessionModule]],
  ])('names forRoot() when %s is imported as a class', async (name, imports) => {
    expect(await refusal({ imports })).toBe(
      `${name}: It is imported as a class: write ${name}.forRoot() in the imports of the root module.`,
    );
  });

  it.each([
    ['useFactory', { inject: [{ token: 'absent', optional: true }, OptionsService], useFactory: () => ({}) }],
    ['useExisting', { useExisting: OptionsService }],
  ])('says which module forRootAsync() with %s has to import', async (_, options) => {
    const sees = (imports: ModuleMetadata['imports'] = []) =>
      refusal({ imports: [SessionModule.forRootAsync({ ...options, imports }), store, OptionsModule] });
    expect(await sees()).toBe(
      'SessionModule: forRootAsync() injects OptionsService, but Nest cannot find it: ' +
        'write forRootAsync({ imports: [OptionsModule], ... }), or make that module global.',
    );
    expect(await sees([OptionsModule])).toBe('it has started');
  });

  it('reports the error of what forRootAsync() injects, not a missing import', async () => {
    const broken = { provide: 'broken', useFactory: () => Promise.reject(new Error('No configuration')) };
    @Module({ providers: [broken], exports: ['broken'] })
    class BrokenModule {}
    const options = { imports: [BrokenModule], inject: ['broken'], useFactory: () => ({}) };
    expect(await refusal({ imports: [SessionModule.forRootAsync(options), store] })).toBe('No configuration');
  });

  it('says what forRootAsync() injects when that and the module wait for each other', async () => {
    @Injectable()
    class Circular {
      constructor(readonly sessions: Sessions) {}
    }
    Inject(Sessions)(Circular, undefined, 0);
    @Injectable()
    class Later implements OnModuleInit {
      sessions: Sessions | undefined;
      constructor(readonly modules: ModuleRef) {}
      onModuleInit() {
        this.sessions = this.modules.get(Sessions, { strict: false });
      }
    }
    Inject(ModuleRef)(Later, undefined, 0);
    const log = new LogRecorder();
    const started = async (service: Type) => {
      const imports = [moduleOf({ providers: [service], exports: [service] })];
      const options = { imports, inject: [service], useFactory: () => ({}) };
      const module = moduleOf({ imports: [SessionModule.forRootAsync(options), MapSessionModule.forRoot()] });
      return NestFactory.createApplicationContext(module, { logger: log, abortOnError: false });
    };
    void started(Circular);
    const warning =
      /SessionModule has waited for its options for 5 s: forRootAsync\(\) injects Circular\. .* from ModuleRef/;
    await eventually(() => expect(log.matching(warning)).toHaveLength(1), { timeout: 30_000 });
    // As it advises.
    const app = await started(Later);
    expect(app.get(Later, { strict: false }).sessions).toBe(app.get(Sessions));
    await app.close();
  });

  it('says that the factory of forRootAsync() returns nothing', async () => {
    for (const options of [{ useFactory: () => undefined }, { inject: [], useFactory: async () => undefined }]) {
      const module = SessionModule.forRootAsync(options as object);
      expect(await refusal({ imports: [module, store] })).toBe(
        'SessionModule: The factory of forRootAsync() has returned undefined: return an object with the options.',
      );
    }
  });

  it('says which method a class for forRootAsync() lacks', async () => {
    class Renamed {
      createOptions() {
        return {};
      }
    }
    @Module({ providers: [Renamed], exports: [Renamed] })
    class RenamedModule {}
    for (const options of [{ useClass: Renamed }, { imports: [RenamedModule], useExisting: Renamed }]) {
      expect(await refusal({ imports: [SessionModule.forRootAsync(options as object), store] })).toBe(
        'SessionModule: Renamed of forRootAsync() has no method createSessionOptions(): add it, and return the options in it.',
      );
    }
    const broken = { inject: [OptionsService], useFactory: (each: object) => (each as { absent(): object }).absent() };
    expect(
      await refusal({ imports: [SessionModule.forRootAsync({ imports: [OptionsModule], ...broken }), store] }),
    ).toBe('each.absent is not a function');
  });

  it.each([{}, { imports: [OptionsModule], inject: [OptionsService] }, { timeout: '1h' }])(
    'says what forRootAsync() needs, given %p',
    async (options) => {
      const module = SessionModule.forRootAsync(options as object);
      expect(await refusal({ imports: [module, store] })).toMatch(
        /^SessionModule: forRootAsync\(\) has nothing that gives the options: write .*useFactory/,
      );
    },
  );

  it('names all invalid options', async () => {
    const options = { timout: '1m', cookie: { sameSite: 'none' } } as object;
    const message = await refusal({ imports: [SessionModule.forRoot(options), store] });
    expect(message).toMatch(/`timout`: known are/);
    expect(message).toMatch(/sameSite/);
  });

  it('refuses to be configured twice', async () => {
    const imports = [SessionModule.forRoot(), SessionModule.forRoot({ timeout: '1m' }), store];
    expect(await refusal({ imports })).toMatch(/^SessionModule: It is configured twice/);
  });

  it('refuses a NestJS that is too old, and says which it needs', async () => {
    const init = Object.getOwnPropertyDescriptor(HttpAdapterHost.prototype, 'init$')!;
    Reflect.deleteProperty(HttpAdapterHost.prototype, 'init$');
    try {
      expect(await refusal({ imports: [SessionModule.forRoot(), store] })).toMatch(
        /^SessionModule: It needs NestJS 11\.1\.4 or later/,
      );
    } finally {
      Object.defineProperty(HttpAdapterHost.prototype, 'init$', init);
    }
  });

  it('refuses a second store', async () => {
    @Module({ providers: [{ provide: SessionRepository, useValue: {} }], exports: [SessionRepository] })
    class OtherModule {}
    expect(await refusal({ imports: [SessionModule.forRoot(), OtherModule, store] })).toBe(
      'SessionModule: There are several stores for the sessions: OtherModule and MapSessionModule. Import one of them, once.',
    );
  });

  it('starts without HTTP', async () => {
    const context = await NestFactory.createApplicationContext(
      moduleOf({ imports: [SessionModule.forRoot(), store] }),
      silent,
    );
    const sessions = context.get(SessionContext);
    expect(sessions.isActive).toBe(false);
    expect(() => sessions.session).toThrow(/does not run on behalf of an HTTP request/);
    await context.close();
  });

  it('uses the SessionIdResolver that overrides its own', async () => {
    class Silent extends SessionIdResolver {
      readonly headers = ['X-Token'];
      resolve() {
        return [];
      }
      send() {}
      expire() {}
    }
    const metadata = { imports: [SessionModule.forRoot(), store], controllers: [TestController] };
    const module = await Test.createTestingModule(metadata)
      .overrideProvider(SessionIdResolver)
      .useClass(Silent)
      .compile();
    const app = module.createNestApplication(silent);
    await app.listen(0, '127.0.0.1');
    const response = await new HttpAgent(await app.getUrl()).get('/');
    expect([response.setCookies, response.headers.vary]).toEqual([[], 'X-Token']);
    await app.close();
  });
});
