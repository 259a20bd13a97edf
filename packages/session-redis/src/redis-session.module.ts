import {
  type ConfigurableModuleAsyncOptions,
  type DynamicModule,
  Global,
  Inject,
  Module,
  Optional,
} from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { ApplicationSerializer, assertConfiguredOnce, isSerializer } from '@nest-session/core/internal';
import { type ResolvedSessionOptions, SESSION_OPTIONS } from '@nest-session/core/store';
import {
  REDIS_SESSION_MODULE_OPTIONS,
  RedisSessionModuleDefinition,
  type RedisSessionModuleOptions,
} from './configuration/redis-session.options.js';
import { RedisSessionLifecycle } from './redis-session.lifecycle.js';
import { REDIS_SESSION_PROVIDERS } from './redis-session.providers.js';
import { RedisSessionRepository } from './repository/redis-session.repository.js';
import { STORE_EXPORTS } from './store.providers.js';

/**
 * Keeps the sessions of `SessionModule` in Redis, and delivers their events. It is global: import it once, in the root
 * module, with `forRoot()` or `forRootAsync()`. In a test, replace it by its name:
 * `overrideModule(RedisSessionModule)`.
 */
@Global()
@Module({
  providers: [...REDIS_SESSION_PROVIDERS, RedisSessionLifecycle],
  exports: [...STORE_EXPORTS, RedisSessionRepository],
})
export class RedisSessionModule {
  /**
   * The module with these options, for the imports of the root module. Wrong options fail the start with an
   * InvalidSessionOptionsError that names all problems.
   */
  static forRoot(options: RedisSessionModuleOptions = {}): DynamicModule {
    return RedisSessionOptionsModule.forRoot(options);
  }

  /** The same with injected options, by `useFactory`, `useClass` or `useExisting`. */
  static forRootAsync(
    options: ConfigurableModuleAsyncOptions<RedisSessionModuleOptions, 'createRedisSessionOptions'>,
  ): DynamicModule {
    return RedisSessionOptionsModule.forRootAsync(options);
  }
}

/**
 * Holds the options. Nest identifies a dynamic module by the imported object, which a test does not have. So the
 * options have a module of their own, and `RedisSessionModule` itself is imported as a plain class.
 */
@Module({ imports: [RedisSessionModule], exports: [REDIS_SESSION_MODULE_OPTIONS] })
class RedisSessionOptionsModule extends RedisSessionModuleDefinition {
  /** @internal Import it with `forRoot()`. */
  constructor(
    @Inject(ModulesContainer) modules: ModulesContainer,
    @Inject(REDIS_SESSION_MODULE_OPTIONS) options: RedisSessionModuleOptions | undefined,
    // Optional, so that the error of another provider names the missing module.
    @Optional() @Inject(SESSION_OPTIONS) session?: ResolvedSessionOptions,
  ) {
    super();
    // Also for the store by which a test replaces `RedisSessionModule`.
    const serializer = session && ApplicationSerializer.of(session);
    if (serializer && isSerializer(options?.serializer)) serializer.chosen = options.serializer;
    assertConfiguredOnce(modules, RedisSessionOptionsModule, 'RedisSessionModule');
  }
}
