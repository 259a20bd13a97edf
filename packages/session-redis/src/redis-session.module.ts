import {
  type ConfigurableModuleAsyncOptions,
  type DynamicModule,
  Global,
  Inject,
  Injectable,
  Module,
  Optional,
  type Provider,
} from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { IndexedSessionRepository } from '@nest-session/core';
import {
  ApplicationSerializer,
  assertConfiguredOnce,
  ForeignSessions,
  isSerializer,
  ofSessionModule,
  SESSION_TELEMETRY,
  type SessionTelemetry,
} from '@nest-session/core/internal';
import { type ResolvedSessionOptions, SESSION_OPTIONS } from '@nest-session/core/store';
import {
  connectionToken,
  DuePoller,
  KeyspaceNotificationListener,
  logger,
  PartitionSignals,
  REDIS_CONNECTIONS,
  type RedisConnections,
  scriptsOn,
  type ScriptsOn,
  type ServicesOfStore,
  shownAddress,
  storeLifecycle,
  storeServices,
  StoreStartLog,
  VERSION,
} from '@nest-session/redis-events/internal';
import type { Redis } from 'ioredis';
import {
  REDIS_SESSION_MODULE_OPTIONS,
  RedisSessionModuleDefinition,
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
import { shownDetails, shownFacts } from './configuration/start-facts.js';
import { ExpiredSessionListener } from './expiration/expired-session.listener.js';
import {
  SessionExpirationSweeper,
  SortedSetExpirationStore,
  tracedPoller,
} from './expiration/session-expiration.sweeper.js';
import { TimedSessions } from './expiration/timed-sessions.js';
import { SessionPartitions } from './keys/session-partitions.js';
import { LimitAcrossPartitions } from './limits/limit-across-partitions.js';
import { RedisForeignSessions } from './repository/redis-foreign-sessions.js';
import { type RedisRepositoryOptions, RedisSessionRepository } from './repository/redis-session.repository.js';
import { OlderSessionSweeper, SessionEpochs, SessionEpochsListener } from './repository/session-epochs.js';
import { keepingRules, SessionScripts } from './scripts/session/session.scripts.js';
import { SessionEventProducer } from './session-events/session-event-producer.js';
import { sessionStoreProviders, STORE_EXPORTS } from './store.providers.js';

function servicesOf({ notifications, expirations }: ResolvedRedisSessionOptions): ServicesOfStore {
  return storeServices({
    before: [TimedSessions, ...(notifications === 'auto' ? [ExpiredSessionListener] : [])],
    after: [...(expirations.store === 'sorted-set' ? [DuePoller] : []), SessionEpochsListener, OlderSessionSweeper],
    log: StartLog,
    listeners: [KeyspaceNotificationListener],
  });
}

const RECOMMENDED_GRACE = 120_000;

/** As soon as Redis has told its version and whether it announces sessions. */
@Injectable()
class StartLog extends StoreStartLog {
  #notifications: string;

  constructor(
    @Inject(REDIS_SESSION_OPTIONS) private readonly options: ResolvedRedisSessionOptions,
    // Optional, so that the error names the missing module.
    @Optional() @Inject(SESSION_OPTIONS) private readonly sessions: ResolvedSessionOptions,
    @Inject(REDIS_CONNECTIONS) connections: RedisConnections,
    @Inject(ExpiredSessionListener) private readonly expired: Pick<ExpiredSessionListener, 'firstState'>,
  ) {
    super(connections);
    this.#notifications = options.notifications === 'off' ? 'off' : 'connecting';
  }

  override start(): void {
    super.start();
    if (this.options.grace >= RECOMMENDED_GRACE) return;
    logger.warn(
      'Option `grace` is below 2m: sessions that end during a short outage are reported without their data. ' +
        'Set a longer one',
    );
  }

  protected override async ask(): Promise<void> {
    if (this.options.notifications === 'auto') this.#notifications = await this.expired.firstState;
  }

  protected tell(server: string): void {
    const { options, sessions } = this;
    const { store, timer } = options.expirations;
    const facts = shownFacts(options, sessions, {
      partitions: options.partitions,
      expirations: store + (timer ? ' with a timer' : ''),
      notifications: this.#notifications,
    });
    const details = shownDetails(options, sessions);
    logger.log(`nest-session ${VERSION} keeps sessions in ${server}: ${shownAddress(options.connection)}; ${facts}`);
    logger.verbose(`Options that are in effect, on Node.js ${process.version}: ${details}`);
  }
}

const OF_SESSION_MODULE = { token: SESSION_OPTIONS, optional: true };

const PROVIDERS: Provider[] = [
  ...sessionStoreProviders<RedisSessionModuleOptions>({
    module: 'RedisSessionModule',
    given: REDIS_SESSION_MODULE_OPTIONS,
    options: REDIS_SESSION_OPTIONS,
    resolve: (options) => resolveRedisSessionOptions(options),
    producer: SessionEventProducer,
    sweeper: { useExisting: SessionExpirationSweeper },
  }),
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
  SessionEpochs,
  SessionEpochsListener,
  LimitAcrossPartitions,
  TimedSessions,
  RedisSessionRepository,
  { provide: IndexedSessionRepository, useExisting: RedisSessionRepository },
  { provide: ForeignSessions, useClass: RedisForeignSessions },
  SessionExpirationSweeper,
  SortedSetExpirationStore,
  {
    provide: DuePoller,
    inject: [SortedSetExpirationStore, SessionPartitions, PartitionSignals],
    useFactory: tracedPoller,
  },
  OlderSessionSweeper,
  ExpiredSessionListener,
  StartLog,
  storeLifecycle(servicesOf),
];

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

/**
 * Keeps the sessions of `SessionModule` in Redis, and delivers their events. It is global: import it once, in the root
 * module, with `forRoot()` or `forRootAsync()`. In a test, replace it by `overrideModule(RedisSessionModule)`.
 */
@Global()
@Module({
  providers: PROVIDERS,
  exports: [...STORE_EXPORTS, RedisSessionRepository],
})
export class RedisSessionModule {
  /** For the imports of the root module. Wrong options fail the start with an error that names all problems. */
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

/** A test overrides the imported class. Nest knows a dynamic module by its object, so another one has the options. */
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
