import type { Provider } from '@nestjs/common';
import { IndexedSessionRepository, SessionRepository } from '@nest-session/core';
import { SESSION_EVENT_GROUPS, SESSION_HEALTH, SESSION_READER } from '@nest-session/core/internal';
import {
  CLEANUP_PROVIDERS,
  CONNECTION_OPTIONS,
  CONNECTION_PROVIDERS,
  type ConnectionOptions,
  CONNECTIONS_TO_SHARE,
  type ConnectionsToShare,
  createConnections,
  DELIVERY_PROVIDERS,
  keyEventListener,
  KeyspaceNotificationListener,
  OutageLog,
  Partitions,
  REDIS_CONNECTIONS,
  type RedisConnections,
} from '@nest-session/redis-events/internal';
import { SHADOW_KEY_LISTENER } from './configuration/redis-session.tokens.js';
import { SessionExpirationSweeper } from './expiration/session-expiration.sweeper.js';
import { RedisSessionReader, SessionHealth } from './health/session-health.js';
import { SessionPartitions } from './keys/session-partitions.js';
import { SessionEventGroups } from './session-events/session-event-groups.js';

/**
 * What every module provides alike that finds its sessions in Redis. The module provides what they inject beside that:
 * its options, its cleanup, its scripts, its repository and its producer of events.
 */
export const STORE_PROVIDERS: Provider[] = [
  OutageLog,
  { provide: REDIS_CONNECTIONS, inject: [CONNECTION_OPTIONS, OutageLog], useFactory: createConnections },
  {
    provide: CONNECTIONS_TO_SHARE,
    inject: [CONNECTION_OPTIONS, REDIS_CONNECTIONS],
    useFactory: (
      { connection: address }: ConnectionOptions,
      { request, writes, background }: RedisConnections,
    ): ConnectionsToShare => ({ address, connections: { request, writes, background } }),
  },
  ...CONNECTION_PROVIDERS,
  { provide: Partitions, useExisting: SessionPartitions },
  keyEventListener(SHADOW_KEY_LISTENER, 'subscriber'),
  // On a connection of its own: the application's key events must not delay those of shadow keys.
  keyEventListener(KeyspaceNotificationListener, 'notifications'),
  { provide: SessionRepository, useExisting: IndexedSessionRepository },
  ...CLEANUP_PROVIDERS,
  ...DELIVERY_PROVIDERS,
  SessionEventGroups,
  SessionHealth,
  RedisSessionReader,
  {
    provide: SESSION_READER,
    inject: [CONNECTION_OPTIONS, RedisSessionReader],
    // Without work in the background, its cleanup would seem to be late for ever.
    useFactory: ({ isGuest }: ConnectionOptions, reader: RedisSessionReader) => (isGuest ? undefined : reader),
  },
  { provide: SESSION_HEALTH, useExisting: SessionHealth },
  { provide: SESSION_EVENT_GROUPS, useExisting: SessionEventGroups },
];

/** What such a module exports. */
export const STORE_EXPORTS = [
  SessionRepository,
  IndexedSessionRepository,
  SessionExpirationSweeper,
  SessionEventGroups,
  KeyspaceNotificationListener,
  // For RedisDeadlineModule.
  CONNECTIONS_TO_SHARE,
  // For @nest-session/redis/terminus.
  SessionHealth,
  // For @nest-session/opentelemetry and @nest-session/admin.
  SESSION_READER,
  // For @nest-session/admin.
  SESSION_HEALTH,
  SESSION_EVENT_GROUPS,
];
