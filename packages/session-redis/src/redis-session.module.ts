import { type DynamicModule, Module } from '@nestjs/common';
import { IndexedSessionRepository, SessionRepository } from '@nest-session/core';
import { SessionEventGroups } from './delivery/session-event.groups.js';
import { KeyspaceNotificationListener } from './notifications/keyspace-notification.listener.js';
import { SessionExpirationSweeper } from './expiration/session-expiration.sweeper.js';
import { RedisSessionLifecycle } from './redis-session.lifecycle.js';
import { RedisSessionModuleDefinition } from './redis-session.module-definition.js';
import type { RedisSessionModuleOptions } from './redis-session.options.js';
import { REDIS_SESSION_PROVIDERS } from './redis-session.providers.js';
import { RedisSessionRepository } from './repository/redis-session.repository.js';

/**
 * Keeps the sessions of `SessionModule` in Redis, and delivers their events. Global: import it once, with
 * `forRoot(options)` or `forRootAsync({ useFactory | useClass | useExisting })`.
 */
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
export class RedisSessionModule extends RedisSessionModuleDefinition {
  static override forRoot(options: RedisSessionModuleOptions = {}): DynamicModule {
    return super.forRoot(options);
  }
}
