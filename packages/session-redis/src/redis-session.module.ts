import { type ConfigurableModuleAsyncOptions, type DynamicModule, Global, Inject, Module } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { IndexedSessionRepository, InvalidSessionOptionsError, SessionRepository } from '@nest-session/core';
import { SessionEventGroups } from './delivery/session-event-groups.js';
import { KeyspaceNotificationListener } from './notifications/keyspace-notification.listener.js';
import { SessionExpirationSweeper } from './expiration/session-expiration.sweeper.js';
import { RedisSessionLifecycle } from './redis-session.lifecycle.js';
import {
  REDIS_SESSION_MODULE_OPTIONS,
  RedisSessionModuleDefinition,
} from './configuration/redis-session.module-definition.js';
import type { RedisSessionModuleOptions } from './configuration/redis-session.options.js';
import { REDIS_SESSION_PROVIDERS } from './redis-session.providers.js';
import { RedisSessionRepository } from './repository/redis-session.repository.js';

/**
 * Keeps the sessions of `SessionModule` in Redis, and delivers their events. Global: import it once, with
 * `forRoot(options)` or `forRootAsync({ useFactory | useClass | useExisting })`. A test replaces it by its name:
 * `overrideModule(RedisSessionModule)`.
 */
@Global()
@Module({
  providers: [...REDIS_SESSION_PROVIDERS, RedisSessionLifecycle],
  exports: [
    SessionRepository,
    IndexedSessionRepository,
    RedisSessionRepository,
    SessionExpirationSweeper,
    SessionEventGroups,
    KeyspaceNotificationListener,
  ],
})
export class RedisSessionModule {
  /**
   * The module for the imports of the root module. @throws InvalidSessionOptionsError at start, naming all problems of
   * the options
   */
  static forRoot(options: RedisSessionModuleOptions = {}): DynamicModule {
    return RedisSessionOptionsModule.forRoot(options);
  }

  /** The same, with options that a factory, a class or an existing provider gives. */
  static forRootAsync(
    options: ConfigurableModuleAsyncOptions<RedisSessionModuleOptions, 'createRedisSessionOptions'>,
  ): DynamicModule {
    return RedisSessionOptionsModule.forRootAsync(options);
  }
}

/**
 * What was given to `forRoot()`. Nest tells modules with options apart by the object that is imported, which a test
 * does not have. So the options have a module of their own, and everything else is imported by its class.
 */
@Module({ imports: [RedisSessionModule], exports: [REDIS_SESSION_MODULE_OPTIONS] })
class RedisSessionOptionsModule extends RedisSessionModuleDefinition {
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    super();
    const own = [...modules.values()].filter(({ metatype }) => metatype === RedisSessionOptionsModule);
    if (own.length > 1) throw new InvalidSessionOptionsError('RedisSessionModule', [IMPORTED_TWICE]);
  }
}

const IMPORTED_TWICE =
  'It is configured twice in this application: import RedisSessionModule.forRoot() once, in the root module; it is global.';
