import { type ConfigurableModuleAsyncOptions, type DynamicModule, Global, Inject, Module } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { assertConfiguredOnce } from '@nest-session/core/internal';
import { KeyspaceNotificationListener } from '../notifications/keyspace-notification.listener.js';
import { RedisEventHandlerModule } from './redis-event.dispatcher.js';
import { RedisEventGroups } from './redis-event-groups.js';
import { RedisEvents } from './redis-events.js';
import { RedisEventsLifecycle } from './redis-events.lifecycle.js';
import {
  REDIS_EVENTS_MODULE_OPTIONS,
  RedisEventsModuleDefinition,
  type RedisEventsModuleOptions,
} from '../configuration/redis-events.options.js';
import { REDIS_EVENTS_PROVIDERS } from './redis-events.providers.js';

/**
 * Keeps events of the application in Redis until every group has handled them, and listens to key events of Redis. It
 * is global: import it once, in the root module, with `forRoot()` or `forRootAsync()`. It needs no sessions. Without an
 * address in its options it uses the connections of `RedisSessionModule`, where that is imported. In a test, replace it
 * by its name: `overrideModule(RedisEventsModule)`.
 */
@Global()
@Module({
  imports: [RedisEventHandlerModule],
  providers: [...REDIS_EVENTS_PROVIDERS, RedisEventsLifecycle],
  exports: [RedisEvents, RedisEventGroups, KeyspaceNotificationListener],
})
export class RedisEventsModule {
  /**
   * The module with these options, for the imports of the root module. Wrong options fail the start with an
   * InvalidSessionOptionsError that names all problems.
   */
  static forRoot(options: RedisEventsModuleOptions = {}): DynamicModule {
    return RedisEventsOptionsModule.forRoot(options);
  }

  /** The same with injected options, by `useFactory`, `useClass` or `useExisting`. */
  static forRootAsync(
    options: ConfigurableModuleAsyncOptions<RedisEventsModuleOptions, 'createRedisEventsOptions'>,
  ): DynamicModule {
    return RedisEventsOptionsModule.forRootAsync(options);
  }
}

/** Holds the options: see `RedisSessionModule`. */
@Module({ imports: [RedisEventsModule], exports: [REDIS_EVENTS_MODULE_OPTIONS] })
class RedisEventsOptionsModule extends RedisEventsModuleDefinition {
  /** @internal Import it with `forRoot()`. */
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    super();
    assertConfiguredOnce(modules, RedisEventsOptionsModule, 'RedisEventsModule');
  }
}
