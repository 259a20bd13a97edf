import type { Provider } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { IndexedSessionRepository, InvalidSessionOptionsError } from '@nest-session/core';
import { ApplicationSerializer, injectDependencies } from '@nest-session/core/internal';
import { type ResolvedSessionOptions, SESSION_OPTIONS, type SessionRepositoryOptions } from '@nest-session/core/store';
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
  type KeyspaceNotificationListener,
  PartitionSignals,
  type ScriptsOn,
  scriptsOn,
} from '@nest-session/redis-events/internal';
import {
  END_NOTIFICATIONS,
  type EndNotifications,
  keepingRules,
  ofSessionModule,
  REQUEST_SESSION_SCRIPTS,
  SESSION_CLEANUP_JOB,
  SESSION_REPOSITORY_OPTIONS,
  SessionExpirationSweeper,
  SessionPartitions,
  SessionScripts,
  SHADOW_KEY_LISTENER,
  STORE_PROVIDERS,
  tracedPoller,
} from '@nest-session/redis/internal';
import type { Redis } from 'ioredis';
import { SPRING_SESSION_MODULE_OPTIONS } from './configuration/spring-session.module-definition.js';
import {
  MODULE,
  problemsWithSpring,
  type ResolvedSpringSessionOptions,
  resolveSpringSessionOptions,
  SPRING_SESSION_OPTIONS,
  type SpringSessionModuleOptions,
} from './configuration/spring-session.options.js';
import { SharedKeys } from './keys/shared-keys.js';
import { SpringSessionRepository } from './read/spring-session.repository.js';
import { SharedEventProducer } from './shared/shared-event-producer.js';
import { SharedSessionListener } from './shared/shared-session.listener.js';
import { SharedSessionRepository } from './shared/shared-session.repository.js';
import { SharedSessionSweeper } from './shared/shared-session.sweeper.js';
import { SpringApplicationCheck } from './shared/spring-application.check.js';
import { SpringStartLog } from './spring-start.log.js';

const BARE_CLASS = 'It is imported as a class: write SpringSessionModule.forRoot() in the imports of the root module.';

const OF_SESSION_MODULE = { token: SESSION_OPTIONS, optional: true };

/** What the providers of every store inject. */
const VALUES: Provider[] = [
  { provide: SPRING_SESSION_OPTIONS, inject: [ModuleRef], useFactory: resolveOptions },
  { provide: CONNECTION_OPTIONS, useExisting: SPRING_SESSION_OPTIONS },
  { provide: DELIVERY_OPTIONS, useExisting: SPRING_SESSION_OPTIONS },
  { provide: SessionPartitions, inject: [SPRING_SESSION_OPTIONS, OF_SESSION_MODULE], useFactory: partitionsOf },
  {
    provide: REQUEST_SESSION_SCRIPTS,
    inject: [SessionPartitions, SPRING_SESSION_OPTIONS],
    useFactory: scriptsOfPartitions,
  },
  { provide: END_NOTIFICATIONS, inject: [SPRING_SESSION_OPTIONS, SHADOW_KEY_LISTENER], useFactory: endNotifications },
  {
    provide: SESSION_REPOSITORY_OPTIONS,
    inject: [SPRING_SESSION_OPTIONS, OF_SESSION_MODULE],
    useFactory: repositoryOptions,
  },
  {
    provide: CLEANUP_SCHEDULE,
    inject: [SPRING_SESSION_OPTIONS],
    useFactory: ({ cron }: ResolvedSpringSessionOptions): CleanupSchedule => ({ name: SESSION_CLEANUP_JOB, cron }),
  },
];

/**
 * All providers of `SpringSessionModule`, in each mode. They connect and start nothing: SpringSessionLifecycle starts
 * those of its mode.
 */
export const SPRING_SESSION_PROVIDERS: Provider[] = [
  ...VALUES,
  ...STORE_PROVIDERS,
  SpringSessionRepository,
  {
    provide: SharedKeys,
    inject: [SPRING_SESSION_OPTIONS, SessionPartitions, connectionToken('background')],
    useFactory: ({ springNamespace }: ResolvedSpringSessionOptions, { all }: SessionPartitions, client: Redis) =>
      new SharedKeys(springNamespace, all[0]!, client.options.db ?? 0),
  },
  SharedSessionRepository,
  {
    provide: IndexedSessionRepository,
    inject: [SPRING_SESSION_OPTIONS, OF_SESSION_MODULE, SpringSessionRepository, SharedSessionRepository],
    useFactory: repositoryOfMode,
  },
  SharedSessionSweeper,
  { provide: DueSweeper, useExisting: SharedSessionSweeper },
  {
    provide: DuePoller,
    inject: [SharedSessionSweeper, SessionPartitions, PartitionSignals],
    useFactory: tracedPoller,
  },
  {
    provide: SessionExpirationSweeper,
    inject: [
      SPRING_SESSION_OPTIONS,
      connectionToken('background'),
      REQUEST_SESSION_SCRIPTS,
      SessionPartitions,
      BackgroundLimiter,
      SharedSessionSweeper,
    ],
    useFactory: expirationSweeper,
  },
  SharedSessionListener,
  SpringApplicationCheck,
  SharedEventProducer,
  { provide: EventProducer, useExisting: SharedEventProducer },
  SpringStartLog,
];

/** Of the module that holds the options, which is missing where the application imports the bare class. */
async function resolveOptions(moduleRef: ModuleRef): Promise<ResolvedSpringSessionOptions> {
  const bareClass = () => new InvalidSessionOptionsError(MODULE, [BARE_CLASS]);
  const [options] = await injectDependencies(moduleRef, [SPRING_SESSION_MODULE_OPTIONS], bareClass);
  return resolveSpringSessionOptions(options as SpringSessionModuleOptions);
}

/** In one partition: Spring's keys cannot be spread. */
function partitionsOf(
  { namespace, mode }: ResolvedSpringSessionOptions,
  sessions: Pick<ResolvedSessionOptions, 'ids' | 'maxSessions'> | undefined,
): SessionPartitions {
  return new SessionPartitions(namespace, 1, {
    module: MODULE,
    ...(sessions && { ids: sessions.ids.form, limits: sessions.maxSessions !== undefined }),
    ...(mode === 'shared' && { holds: 'shared-sessions' }),
  });
}

/** For what counts sessions by our own list of them. */
function scriptsOfPartitions(
  partitions: SessionPartitions,
  options: ResolvedSpringSessionOptions,
): ScriptsOn<SessionScripts> {
  const rules = keepingRules({ ...options, expirations: { store: 'buckets', timer: undefined } }, partitions);
  return scriptsOn((client) => new SessionScripts(client, partitions, rules));
}

function endNotifications(
  { mode }: ResolvedSpringSessionOptions,
  listener: KeyspaceNotificationListener,
): EndNotifications {
  if (mode === 'read') return { state: 'off' };
  return {
    get state() {
      return listener.health.state;
    },
  };
}

function repositoryOptions(
  { serializer }: ResolvedSpringSessionOptions,
  options: ResolvedSessionOptions | undefined,
): SessionRepositoryOptions {
  const session = ofSessionModule(options, MODULE);
  const ofApplication = ApplicationSerializer.of(session);
  // Spring has a say in the text, and the package of express-session in the values.
  if (serializer && ofApplication) serializer.plain = () => ofApplication.byDefault;
  return { ...session, serializer: serializer ?? session.serializer };
}

/** @throws InvalidSessionOptionsError when sessions of Spring cannot have an option of `SessionModule` */
function repositoryOfMode(
  { mode }: ResolvedSpringSessionOptions,
  sessions: ResolvedSessionOptions | undefined,
  read: SpringSessionRepository,
  shared: SharedSessionRepository,
): IndexedSessionRepository {
  const problems = sessions ? problemsWithSpring(mode, sessions) : [];
  if (problems.length > 0) throw new InvalidSessionOptionsError(MODULE, problems);
  return mode === 'read' ? read : shared;
}

/** The ends are not noted in our form, and a script for that would report live sessions. */
function expirationSweeper(
  options: ResolvedSpringSessionOptions,
  client: Redis,
  scripts: ScriptsOn<SessionScripts>,
  partitions: SessionPartitions,
  limiter: BackgroundLimiter,
  shared: SharedSessionSweeper,
): SessionExpirationSweeper {
  const stores = options.mode === 'shared' ? [shared] : [];
  return new SessionExpirationSweeper(client, scripts(client), partitions, options, limiter, stores);
}
