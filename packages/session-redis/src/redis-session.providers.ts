import type { Provider } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { IndexedSessionRepository, InvalidSessionOptionsError, SessionRepository } from '@nest-session/core';
import {
  ApplicationSerializer,
  ForeignSessions,
  injectDependencies,
  SESSION_TELEMETRY,
  type SessionTelemetry,
  SESSION_EVENT_GROUPS,
  SESSION_HEALTH,
  SESSION_READER,
} from '@nest-session/core/internal';
import { type ResolvedSessionOptions, SESSION_OPTIONS } from '@nest-session/core/store';
import {
  CLEANUP_PROVIDERS,
  CLEANUP_SCHEDULE,
  type CleanupSchedule,
  CONNECTION_OPTIONS,
  CONNECTION_PROVIDERS,
  CONNECTIONS_TO_SHARE,
  type ConnectionsToShare,
  connectionToken,
  createConnections,
  DELIVERY_OPTIONS,
  DELIVERY_PROVIDERS,
  EventProducer,
  KeyspaceNotificationListener,
  OutageLog,
  Partitions,
  REDIS_CONNECTIONS,
  type RedisConnections,
  type RedisNodes,
  type ScriptsOn,
  scriptsOn,
} from '@nest-session/redis-events/internal';
import {
  problemsWithSpring,
  SHARED_PROVIDERS,
  SharedSessionRepository,
  SpringJsonSerializer,
  SpringSessionRepository,
} from '@nest-session/spring/internal';
import { ofSessionModule } from './configuration/of-session-module.js';
import type { Redis } from 'ioredis';
import { REDIS_SESSION_MODULE_OPTIONS } from './configuration/redis-session.module-definition.js';
import {
  type RedisSessionModuleOptions,
  type ResolvedRedisSessionOptions,
  resolveRedisSessionOptions,
} from './configuration/redis-session.options.js';
import {
  BACKGROUND_SESSION_SCRIPTS,
  REDIS_SESSION_OPTIONS,
  REQUEST_SESSION_SCRIPTS,
  SESSION_REPOSITORY_OPTIONS,
  SHADOW_KEY_LISTENER,
} from './configuration/redis-session.tokens.js';
import { ExpiredSessionListener } from './expiration/expired-session.listener.js';
import { OlderSessionSweeper } from './expiration/older-session.sweeper.js';
import { SESSION_CLEANUP_JOB } from './expiration/session-expiration.sweeper.js';
import { TimedSessionListener } from './expiration/timed-session.listener.js';
import { RedisSessionReader } from './health/redis-session.reader.js';
import { SessionHealth } from './health/session-health.js';
import { SessionPartitions } from './keys/session-partitions.js';
import { LimitAcrossPartitions } from './limits/limit-across-partitions.js';
import { RedisForeignSessions } from './repository/redis-foreign-sessions.js';
import { type RedisRepositoryOptions, RedisSessionRepository } from './repository/redis-session.repository.js';
import { ScheduledEnds } from './repository/scheduled-ends.js';
import { SessionEpochs } from './repository/session-epochs.js';
import { SessionEpochsListener } from './repository/session-epochs.listener.js';
import { keepingRules } from './scripts/session/keeping-rules.js';
import { SessionScripts } from './scripts/session/session.scripts.js';
import { SessionEventGroups } from './session-events/session-event-groups.js';
import { SessionEventProducer } from './session-events/session-event-producer.js';
import { StartLog } from './start.log.js';
import { SWEEP_PROVIDERS } from './sweep.providers.js';

const BARE_CLASS = 'It is imported as a class: write RedisSessionModule.forRoot() in the imports of the root module.';

/** The repository of sessions in our own form. */
const OWN_REPOSITORY = Symbol('OWN_REPOSITORY');

/** Values, and the classes with one instance per connection. */
const VALUES: Provider[] = [
  { provide: REDIS_SESSION_OPTIONS, inject: [ModuleRef], useFactory: resolveOptions },
  { provide: CONNECTION_OPTIONS, useExisting: REDIS_SESSION_OPTIONS },
  { provide: DELIVERY_OPTIONS, useExisting: REDIS_SESSION_OPTIONS },
  OutageLog,
  {
    provide: REDIS_CONNECTIONS,
    inject: [REDIS_SESSION_OPTIONS, OutageLog],
    useFactory: (options: ResolvedRedisSessionOptions, log: OutageLog) => createConnections(options, log),
  },
  {
    provide: CONNECTIONS_TO_SHARE,
    inject: [REDIS_SESSION_OPTIONS, REDIS_CONNECTIONS],
    useFactory: (
      { connection: address }: ResolvedRedisSessionOptions,
      { request, writes, background }: RedisConnections,
    ): ConnectionsToShare => ({ address, connections: { request, writes, background } }),
  },
  {
    provide: SessionPartitions,
    inject: [REDIS_SESSION_OPTIONS, { token: SESSION_OPTIONS, optional: true }],
    useFactory: partitionsOf,
  },
  { provide: Partitions, useExisting: SessionPartitions },
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
    useFactory: onConnection<SessionScripts>,
  },
  listener(SHADOW_KEY_LISTENER, 'subscriber'),
  // On a connection of its own: the application's key events must not delay those of shadow keys.
  listener(KeyspaceNotificationListener, 'notifications'),
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
  ...CONNECTION_PROVIDERS,
  SessionEpochs,
  SessionEpochsListener,
  LimitAcrossPartitions,
  ScheduledEnds,
  { provide: OWN_REPOSITORY, useClass: RedisSessionRepository },
  RedisForeignSessions,
  {
    provide: ForeignSessions,
    inject: [REDIS_SESSION_OPTIONS, RedisForeignSessions],
    // They would become sessions in our own form, in the namespace of Spring or where nobody looks.
    useFactory: ({ spring }: ResolvedRedisSessionOptions, own: RedisForeignSessions) => (spring ? undefined : own),
  },
  SpringSessionRepository,
  ...SHARED_PROVIDERS,
  {
    // With Spring, our own one would write its sessions into Spring's namespace, or where nobody looks.
    provide: RedisSessionRepository,
    inject: [
      REDIS_SESSION_OPTIONS,
      { token: SESSION_OPTIONS, optional: true },
      OWN_REPOSITORY,
      SpringSessionRepository,
      SharedSessionRepository,
    ],
    useFactory: chosenRepository,
  },
  { provide: IndexedSessionRepository, useExisting: RedisSessionRepository },
  { provide: SessionRepository, useExisting: IndexedSessionRepository },
  ...SWEEP_PROVIDERS,
  OlderSessionSweeper,
  ExpiredSessionListener,
  TimedSessionListener,
  StartLog,
  ...CLEANUP_PROVIDERS,
  ...DELIVERY_PROVIDERS,
  SessionEventProducer,
  { provide: EventProducer, useExisting: SessionEventProducer },
  SessionEventGroups,
  SessionHealth,
  RedisSessionReader,
  {
    provide: SESSION_READER,
    inject: [REDIS_SESSION_OPTIONS, RedisSessionReader],
    // Without work in the background, its cleanup would seem to be late for ever.
    useFactory: ({ isGuest }: ResolvedRedisSessionOptions, own: RedisSessionReader) => (isGuest ? undefined : own),
  },
  { provide: SESSION_HEALTH, useExisting: SessionHealth },
  { provide: SESSION_EVENT_GROUPS, useExisting: SessionEventGroups },
];

/** Of the module that holds the options, which is missing where the application imports the bare class. */
async function resolveOptions(moduleRef: ModuleRef): Promise<ResolvedRedisSessionOptions> {
  const bareClass = () => new InvalidSessionOptionsError('RedisSessionModule', [BARE_CLASS]);
  const [options] = await injectDependencies(moduleRef, [REDIS_SESSION_MODULE_OPTIONS], bareClass);
  return resolveRedisSessionOptions(options as RedisSessionModuleOptions);
}

function partitionsOf(
  { namespace, partitions, spring }: ResolvedRedisSessionOptions,
  sessions: Pick<ResolvedSessionOptions, 'ids' | 'maxSessions'> | undefined,
): SessionPartitions {
  return new SessionPartitions(namespace, partitions, {
    ...(sessions && { ids: sessions.ids.form, limits: sessions.maxSessions !== undefined }),
    ...(spring === 'shared' && { holds: 'shared-sessions' }),
  });
}

function onConnection<Scripts>(scripts: ScriptsOn<Scripts>, client: Redis): Scripts {
  return scripts(client);
}

function listener(provide: symbol | typeof KeyspaceNotificationListener, name: keyof RedisConnections): Provider {
  return {
    provide,
    inject: [connectionToken(name), connectionToken('background')],
    useFactory: (nodes: RedisNodes, commands: Redis) => new KeyspaceNotificationListener(nodes, commands),
  };
}

function repositoryOptions(
  { serializer, encryption, namespace }: ResolvedRedisSessionOptions,
  options: ResolvedSessionOptions | undefined,
): RedisRepositoryOptions {
  const session = ofSessionModule(options);
  const ofApplication = ApplicationSerializer.of(session);
  // Spring has a say in the text, and the package of express-session in the values.
  if (serializer instanceof SpringJsonSerializer && ofApplication) serializer.plain = () => ofApplication.byDefault;
  return { ...session, serializer: serializer ?? session.serializer, encryption, namespace };
}

function chosenRepository(
  { spring }: ResolvedRedisSessionOptions,
  sessions: ResolvedSessionOptions | undefined,
  own: RedisSessionRepository,
  read: SpringSessionRepository,
  shared: SharedSessionRepository,
): IndexedSessionRepository {
  if (!spring) return own;
  const problems = sessions ? problemsWithSpring(spring, sessions) : [];
  if (problems.length > 0) throw new InvalidSessionOptionsError('RedisSessionModule', problems);
  return spring === 'read' ? read : shared;
}
