import {
  type ConfigurableModuleAsyncOptions,
  ConfigurableModuleBuilder,
  type DynamicModule,
  Global,
  Inject,
  Module,
} from '@nestjs/common';
import { DiscoveryModule, DiscoveryService, MetadataScanner, ModuleRef, ModulesContainer } from '@nestjs/core';
import {
  assertOneStore,
  explainInjection,
  injectDependencies,
  SecurityEventDispatcher,
  SecurityEvents,
} from '@nest-session/core/internal';
import { type ResolvedSessionOptions, SESSION_OPTIONS } from '@nest-session/core/store';
import { DeadlineStore } from './deadline.store.js';
import { DeadlineHandlerModule } from './deadline-handlers.js';
import {
  DEADLINE_OPTIONS,
  type DeadlineModuleOptions,
  Deadlines,
  type ResolvedDeadlineOptions,
  resolveDeadlineOptions,
} from './deadlines.js';

/** Implement it in a class that you pass to `forRootAsync()` as `useClass` or `useExisting`. */
export interface DeadlineOptionsFactory {
  /** Returns the options, or a promise of them. Called once, at start. */
  createDeadlineOptions(): DeadlineModuleOptions | Promise<DeadlineModuleOptions>;
}

const { ConfigurableModuleClass: DeadlineModuleDefinition, MODULE_OPTIONS_TOKEN: DEADLINE_MODULE_OPTIONS } =
  new ConfigurableModuleBuilder<DeadlineModuleOptions>({ moduleName: 'Deadline' })
    .setClassMethodName('forRoot')
    .setFactoryMethodName('createDeadlineOptions')
    .setExtras({}, (definition) => ({ ...explainInjection('DeadlineModule', definition), global: true }))
    .build();

const OF_SESSIONS = { token: SESSION_OPTIONS, optional: true };

/**
 * Provides `Deadlines` to the whole application. Import it once, in the root module, with `RedisDeadlineModule` of
 * `@nest-session/deadlines/redis`, or `MapDeadlineModule`. It needs no sessions.
 */
@Global()
@Module({
  imports: [DiscoveryModule, DeadlineHandlerModule],
  providers: [
    // Nest would take the class and a dynamic module of it for two modules.
    { provide: DEADLINE_OPTIONS, inject: [ModuleRef], useFactory: resolveOptions },
    MetadataScanner,
    {
      provide: SecurityEvents,
      inject: [OF_SESSIONS],
      // Without sessions, no request and no session is known here.
      useFactory: (sessions?: ResolvedSessionOptions) =>
        sessions?.securityEvents ?? new SecurityEvents({ shownId: (id) => id, factsOf: () => ({}) }),
    },
    {
      // Beside `SessionModule`, whose dispatcher calls the `@OnSecurityEvent` methods, there is none here.
      provide: SecurityEventDispatcher,
      inject: [SecurityEvents, DiscoveryService, MetadataScanner, OF_SESSIONS],
      useFactory: (
        events: SecurityEvents,
        discovery: DiscoveryService,
        scanner: MetadataScanner,
        sessions?: ResolvedSessionOptions,
      ) => (sessions ? undefined : new SecurityEventDispatcher(events, discovery, scanner)),
    },
    Deadlines,
  ],
  // The last one: for @nest-session/admin.
  exports: [Deadlines, SecurityEvents],
})
export class DeadlineModule {
  /** @internal Import it with `forRoot()`. */
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    assertOneStore(modules, DeadlineStore, 'DeadlineModule', 'deadlines');
  }

  /** For the imports of the root module. Wrong options fail the start with an error that names all. */
  static forRoot(options: DeadlineModuleOptions = {}): DynamicModule {
    return DeadlineOptionsModule.forRoot(options);
  }

  /** The same with injected options, by `useFactory`, `useClass` or `useExisting`. */
  static forRootAsync(
    options: ConfigurableModuleAsyncOptions<DeadlineModuleOptions, 'createDeadlineOptions'>,
  ): DynamicModule {
    return DeadlineOptionsModule.forRootAsync(options);
  }
}

@Module({ imports: [DeadlineModule], exports: [DEADLINE_MODULE_OPTIONS] })
class DeadlineOptionsModule extends DeadlineModuleDefinition {}

async function resolveOptions(moduleRef: ModuleRef): Promise<ResolvedDeadlineOptions> {
  const given = { token: DEADLINE_MODULE_OPTIONS, optional: true };
  const [options] = await injectDependencies(moduleRef, [given], () => new Error('It is optional'));
  return resolveDeadlineOptions(options as DeadlineModuleOptions | undefined);
}
