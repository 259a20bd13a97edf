import { type ConfigurableModuleAsyncOptions, type DynamicModule, Global, Inject, Module } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { assertConfiguredOnce, DEADLINE_READER, MEASURED_DEADLINES } from '@nest-session/core/internal';
import { DeadlineHandlerModule } from '../deadlines/deadline-handler.module.js';
import { DeadlineEvents } from '../deadlines/deadline.events.js';
import { DeadlineStore } from '../deadlines/deadline.store.js';
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
  providers: REDIS_DEADLINE_PROVIDERS,
  // The last two: for @nest-session/opentelemetry and @nest-session/admin.
  exports: [DeadlineStore, DeadlineEvents, DEADLINE_READER, MEASURED_DEADLINES],
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
