import type { Provider } from '@nestjs/common';
import { IndexedSessionRepository, SessionRepository } from '@nest-session/core';
import { SESSION_EVENT_GROUPS, SESSION_HEALTH, SESSION_READER } from '@nest-session/core/internal';
import {
  CONNECTION_OPTIONS,
  type ConnectionOptions,
  CONNECTIONS_TO_SHARE,
  type ConnectionsToShare,
  keyEventListener,
  KeyspaceNotificationListener,
  REDIS_CONNECTIONS,
  type RedisConnections,
  storeProviders,
} from '@nest-session/redis-events/internal';
import { SHADOW_KEY_LISTENER } from './configuration/redis-session.tokens.js';
import { SESSION_CLEANUP_JOB, SessionExpirationSweeper } from './expiration/session-expiration.sweeper.js';
import { RedisSessionReader, SessionHealth } from './health/session-health.js';
import { SessionPartitions } from './keys/session-partitions.js';
import { SessionEventGroups } from './session-events/session-event-groups.js';

type PartsOfModule<Given> = Omit<
  Parameters<typeof storeProviders<Given>>[0],
  'usesShared' | 'partitions' | 'cleanupJob'
>;

/** What every module provides that finds its sessions in Redis, beside its partitions, scripts and repository. */
export function sessionStoreProviders<Given>(parts: PartsOfModule<Given>): Provider[] {
  const ofSessions = { usesShared: false, partitions: SessionPartitions, cleanupJob: SESSION_CLEANUP_JOB };
  return [...storeProviders<Given>({ ...parts, ...ofSessions }), ...PROVIDERS];
}

const PROVIDERS: Provider[] = [
  {
    provide: CONNECTIONS_TO_SHARE,
    inject: [CONNECTION_OPTIONS, REDIS_CONNECTIONS],
    useFactory: (
      { connection: address }: ConnectionOptions,
      { request, writes, background }: RedisConnections,
    ): ConnectionsToShare => ({ address, connections: { request, writes, background } }),
  },
  keyEventListener(SHADOW_KEY_LISTENER, 'subscriber'),
  // On a connection of its own: the application's key events must not delay those of shadow keys.
  keyEventListener(KeyspaceNotificationListener, 'notifications'),
  { provide: SessionRepository, useExisting: IndexedSessionRepository },
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
