import { type ConfigurableModuleAsyncOptions, type DynamicModule, Global, Inject, Module } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { DeadlineEvents } from '@nest-session/core/deadlines';
import {
  assertConfiguredOnce,
  DEADLINE_READER,
  DeadlineHandlerModule,
  DeadlineStore,
} from '@nest-session/core/internal';
import { RedisDeadlineLifecycle } from './redis-deadline.lifecycle.js';
import {
  REDIS_DEADLINE_MODULE_OPTIONS,
  RedisDeadlineModuleDefinition,
  type RedisDeadlineModuleOptions,
} from './redis-deadline.options.js';
import { REDIS_DEADLINE_PROVIDERS } from './redis-deadline.providers.js';

/**
 * Keeps the deadlines of `DeadlineModule` in Redis, and delivers them when they come. It is global: import it once, in
 * the root module, with `forRoot()` or `forRootAsync()`. Without an address in its options it uses the connections of
 * `RedisSessionModule`, where that is imported. In a test, replace it by its name:
 * `overrideModule(RedisDeadlineModule)`.
 */
@Global()
@Module({
  imports: [DeadlineHandlerModule],
  providers: [...REDIS_DEADLINE_PROVIDERS, RedisDeadlineLifecycle],
  // The reader: for @nest-session/opentelemetry.
  exports: [DeadlineStore, DeadlineEvents, DEADLINE_READER],
})
export class RedisDeadlineModule {
  /**
   * The module with these options, for the imports of the root module. Wrong options fail the start with an
   * InvalidSessionOptionsError that names all problems.
   */
  static forRoot(options: RedisDeadlineModuleOptions = {}): DynamicModule {
    return RedisDeadlineOptionsModule.forRoot(options);
  }

  /** The same with injected options, by `useFactory`, `useClass` or `useExisting`. */
  static forRootAsync(
    options: ConfigurableModuleAsyncOptions<RedisDeadlineModuleOptions, 'createRedisDeadlineOptions'>,
  ): DynamicModule {
    return RedisDeadlineOptionsModule.forRootAsync(options);
  }
}

/** Holds the options: see `RedisSessionModule`. */
@Module({ imports: [RedisDeadlineModule], exports: [REDIS_DEADLINE_MODULE_OPTIONS] })
class RedisDeadlineOptionsModule extends RedisDeadlineModuleDefinition {
  /** @internal Import it with `forRoot()`. */
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    super();
    assertConfiguredOnce(modules, RedisDeadlineOptionsModule, 'RedisDeadlineModule');
  }
}
