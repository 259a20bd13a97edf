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
  CLEANUP_SCHEDULE,
  type CleanupSchedule,
  CONNECTION_OPTIONS,
  connectionToken,
  DELIVERY_OPTIONS,
  EventProducer,
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
import { OlderSessionSweeper } from './expiration/older-session.sweeper.js';
import { SESSION_CLEANUP_JOB } from './expiration/session-expiration.sweeper.js';
import { TimedSessionListener } from './expiration/timed-session.listener.js';
import { SessionPartitions } from './keys/session-partitions.js';
import { LimitAcrossPartitions } from './limits/limit-across-partitions.js';
import { RedisForeignSessions } from './repository/redis-foreign-sessions.js';
import { type RedisRepositoryOptions, RedisSessionRepository } from './repository/redis-session.repository.js';
import { ScheduledEnds } from './repository/scheduled-ends.js';
import { SessionEpochs } from './repository/session-epochs.js';
import { SessionEpochsListener } from './repository/session-epochs.listener.js';
import { keepingRules } from './scripts/session/keeping-rules.js';
import { SessionScripts } from './scripts/session/session.scripts.js';
import { SessionEventProducer } from './session-events/session-event-producer.js';
import { StartLog } from './start.log.js';
import { STORE_PROVIDERS } from './store.providers.js';
import { SWEEP_PROVIDERS } from './sweep.providers.js';

/** Values, and the classes with one instance per connection. */
const VALUES: Provider[] = [
  { provide: REDIS_SESSION_OPTIONS, inject: [ModuleRef], useFactory: resolveOptions },
  { provide: CONNECTION_OPTIONS, useExisting: REDIS_SESSION_OPTIONS },
  { provide: DELIVERY_OPTIONS, useExisting: REDIS_SESSION_OPTIONS },
  {
    provide: SessionPartitions,
    inject: [REDIS_SESSION_OPTIONS, { token: SESSION_OPTIONS, optional: true }],
    useFactory: partitionsOf,
  },
  {
    provide: REQUEST_SESSION_SCRIPTS,
    inject: [SessionPartitions, REDIS_SESSION_OPTIONS, { token: SESSION_TELEMETRY, optional: true }],
    useFactory: (
      partitions: SessionPartitions,
      options: ResolvedRedisSessionOptions,
      telemetry: SessionTelemetry | undefined,
    ) => scriptsOn((client) => new SessionScripts(client, partitions, keepingRules(options, partitions, telemetry))),
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
    inject: [REDIS_SESSION_OPTIONS, { token: SESSION_OPTIONS, optional: true }],
    useFactory: repositoryOptions,
  },
  {
    provide: CLEANUP_SCHEDULE,
    inject: [REDIS_SESSION_OPTIONS],
    useFactory: ({ cron }: ResolvedRedisSessionOptions): CleanupSchedule => ({ name: SESSION_CLEANUP_JOB, cron }),
  },
];

/** All providers of `RedisSessionModule`. They connect and start nothing. */
export const REDIS_SESSION_PROVIDERS: Provider[] = [
  ...VALUES,
  ...STORE_PROVIDERS,
  SessionEpochs,
  SessionEpochsListener,
  LimitAcrossPartitions,
  ScheduledEnds,
  RedisSessionRepository,
  { provide: IndexedSessionRepository, useExisting: RedisSessionRepository },
  { provide: ForeignSessions, useClass: RedisForeignSessions },
  ...SWEEP_PROVIDERS,
  OlderSessionSweeper,
  ExpiredSessionListener,
  TimedSessionListener,
  StartLog,
  SessionEventProducer,
  { provide: EventProducer, useExisting: SessionEventProducer },
];

/** Of the module that holds the options, which is missing where the application imports the bare class. */
async function resolveOptions(moduleRef: ModuleRef): Promise<ResolvedRedisSessionOptions> {
  const options = await givenOptions<RedisSessionModuleOptions>(
    moduleRef,
    REDIS_SESSION_MODULE_OPTIONS,
    'RedisSessionModule',
  );
  return resolveRedisSessionOptions(options);
}

function partitionsOf(
  { namespace, partitions }: ResolvedRedisSessionOptions,
  sessions: Pick<ResolvedSessionOptions, 'ids' | 'maxSessions'> | undefined,
): SessionPartitions {
  const owner = sessions && { ids: sessions.ids.form, limits: sessions.maxSessions !== undefined };
  return new SessionPartitions(namespace, partitions, owner);
}

function repositoryOptions(
  { serializer, encryption, namespace }: ResolvedRedisSessionOptions,
  options: ResolvedSessionOptions | undefined,
): RedisRepositoryOptions {
  const session = ofSessionModule(options, 'RedisSessionModule');
  return { ...session, serializer: serializer ?? session.serializer, encryption, namespace };
}
