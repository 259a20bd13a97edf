import type { Provider } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { IndexedSessionRepository } from '@nest-session/core';
import {
  ForeignSessions,
  givenOptions,
  ofSessionModule,
  SESSION_TELEMETRY,
  type SessionTelemetry,
} from '@nest-session/core/internal';
import { type ResolvedSessionOptions, SESSION_OPTIONS } from '@nest-session/core/store';
import {
  BackgroundLimiter,
  CLEANUP_SCHEDULE,
  type CleanupSchedule,
  CONNECTION_OPTIONS,
  connectionToken,
  DELIVERY_OPTIONS,
  DuePoller,
  DueSweeper,
  EventProducer,
  PartitionSignals,
  type ScriptsOn,
  scriptsOn,
} from '@nest-session/redis-events/internal';
import type { Redis } from 'ioredis';
import {
  REDIS_SESSION_MODULE_OPTIONS,
  type RedisSessionModuleOptions,
  type ResolvedRedisSessionOptions,
  resolveRedisSessionOptions,
} from './configuration/redis-session.options.js';
import {
  BACKGROUND_SESSION_SCRIPTS,
  END_NOTIFICATIONS,
  type EndNotifications,
  REDIS_SESSION_OPTIONS,
  REQUEST_SESSION_SCRIPTS,
  SESSION_REPOSITORY_OPTIONS,
} from './configuration/redis-session.tokens.js';
import { ExpiredSessionListener } from './expiration/expired-session.listener.js';
import {
  SESSION_CLEANUP_JOB,
  SessionExpirationSweeper,
  SortedSetExpirationStore,
} from './expiration/session-expiration.sweeper.js';
import { TimedSessions } from './expiration/timed-sessions.js';
import { tracedPoller } from './expiration/traced-sweep.js';
import type { SessionKeys } from './keys/session-keys.js';
import { SessionPartitions } from './keys/session-partitions.js';
import { LimitAcrossPartitions } from './limits/limit-across-partitions.js';
import { StartLog } from './redis-session.lifecycle.js';
import { RedisForeignSessions } from './repository/redis-foreign-sessions.js';
import { type RedisRepositoryOptions, RedisSessionRepository } from './repository/redis-session.repository.js';
import { OlderSessionSweeper, SessionEpochs, SessionEpochsListener } from './repository/session-epochs.js';
import { keepingRules, SessionScripts } from './scripts/session/session.scripts.js';
import { SessionEventProducer } from './session-events/session-event-producer.js';
import { STORE_PROVIDERS } from './store.providers.js';

const OF_SESSION_MODULE = { token: SESSION_OPTIONS, optional: true };

/** What claims sessions that have expired, of the connection for background work. */
const OF_SWEEPER = [
  connectionToken('background'),
  BACKGROUND_SESSION_SCRIPTS,
  SessionPartitions,
  REDIS_SESSION_OPTIONS,
  BackgroundLimiter,
];

/** All providers of `RedisSessionModule`. They connect and start nothing. */
export const REDIS_SESSION_PROVIDERS: Provider[] = [
  { provide: REDIS_SESSION_OPTIONS, inject: [ModuleRef], useFactory: resolveOptions },
  { provide: CONNECTION_OPTIONS, useExisting: REDIS_SESSION_OPTIONS },
  { provide: DELIVERY_OPTIONS, useExisting: REDIS_SESSION_OPTIONS },
  { provide: SessionPartitions, inject: [REDIS_SESSION_OPTIONS, OF_SESSION_MODULE], useFactory: partitionsOf },
  {
    provide: REQUEST_SESSION_SCRIPTS,
    inject: [SessionPartitions, REDIS_SESSION_OPTIONS, { token: SESSION_TELEMETRY, optional: true }],
    useFactory: (partitions: SessionPartitions, options: ResolvedRedisSessionOptions, telemetry?: SessionTelemetry) =>
      scriptsOn((client) => new SessionScripts(client, partitions, keepingRules(options, partitions, telemetry))),
  },
  {
    provide: BACKGROUND_SESSION_SCRIPTS,
    inject: [REQUEST_SESSION_SCRIPTS, connectionToken('background')],
    useFactory: (scripts: ScriptsOn<SessionScripts>, client: Redis) => scripts(client),
  },
  {
    provide: END_NOTIFICATIONS,
    inject: [REDIS_SESSION_OPTIONS, ExpiredSessionListener],
    useFactory: ({ notifications }: ResolvedRedisSessionOptions, listener: EndNotifications): EndNotifications =>
      notifications === 'off' ? { state: 'off' } : listener,
  },
  {
    provide: SESSION_REPOSITORY_OPTIONS,
    inject: [REDIS_SESSION_OPTIONS, OF_SESSION_MODULE],
    useFactory: repositoryOptions,
  },
  {
    provide: CLEANUP_SCHEDULE,
    inject: [REDIS_SESSION_OPTIONS],
    useFactory: ({ cron }: ResolvedRedisSessionOptions): CleanupSchedule => ({ name: SESSION_CLEANUP_JOB, cron }),
  },
  ...STORE_PROVIDERS,
  SessionEpochs,
  SessionEpochsListener,
  LimitAcrossPartitions,
  TimedSessions,
  RedisSessionRepository,
  { provide: IndexedSessionRepository, useExisting: RedisSessionRepository },
  { provide: ForeignSessions, useClass: RedisForeignSessions },
  {
    provide: SessionExpirationSweeper,
    inject: OF_SWEEPER,
    useFactory: (...given: ConstructorParameters<typeof SessionExpirationSweeper>) =>
      new SessionExpirationSweeper(...given),
  },
  { provide: DueSweeper, useExisting: SessionExpirationSweeper },
  { provide: DuePoller, inject: [PartitionSignals, ...OF_SWEEPER], useFactory: poller },
  OlderSessionSweeper,
  ExpiredSessionListener,
  StartLog,
  SessionEventProducer,
  { provide: EventProducer, useExisting: SessionEventProducer },
];

/** Of the module that holds the options, which is missing where the application imports the bare class. */
async function resolveOptions(moduleRef: ModuleRef): Promise<ResolvedRedisSessionOptions> {
  const token = REDIS_SESSION_MODULE_OPTIONS;
  return resolveRedisSessionOptions(
    await givenOptions<RedisSessionModuleOptions>(moduleRef, token, 'RedisSessionModule'),
  );
}

function partitionsOf(
  { namespace, partitions }: ResolvedRedisSessionOptions,
  sessions?: ResolvedSessionOptions,
): SessionPartitions {
  const owner = sessions && { ids: sessions.ids.form, limits: sessions.maxSessions !== undefined };
  return new SessionPartitions(namespace, partitions, owner);
}

function repositoryOptions(
  { serializer, encryption, namespace }: ResolvedRedisSessionOptions,
  options?: ResolvedSessionOptions,
): RedisRepositoryOptions {
  const session = ofSessionModule(options, 'RedisSessionModule');
  return { ...session, serializer: serializer ?? session.serializer, encryption, namespace };
}

function poller(
  signals: PartitionSignals,
  client: Redis,
  scripts: SessionScripts,
  partitions: SessionPartitions,
  { batchSize }: ResolvedRedisSessionOptions,
  limiter: BackgroundLimiter,
): DuePoller<SessionKeys> {
  return tracedPoller(new SortedSetExpirationStore(client, scripts, batchSize, limiter), partitions, signals);
}
