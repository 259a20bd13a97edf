import {
  type ConfigurableModuleAsyncOptions,
  ConfigurableModuleBuilder,
  type DynamicModule,
  Global,
  Inject,
  Injectable,
  Module,
  Optional,
  type Provider,
} from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import type { Redis } from 'ioredis';
import { IndexedSessionRepository, InvalidSessionOptionsError } from '@nest-session/core';
import { ApplicationSerializer, assertConfiguredOnce, explainInjection } from '@nest-session/core/internal';
import { type ResolvedSessionOptions, SESSION_OPTIONS, type SessionRepositoryOptions } from '@nest-session/core/store';
import {
  BackgroundLimiter,
  connectionToken,
  DuePoller,
  KeyspaceNotificationListener,
  logger,
  PartitionSignals,
  REDIS_CONNECTIONS,
  type RedisConnections,
  type ScriptsOn,
  scriptsOn,
  type ServicesOfStore,
  shownAddress,
  StoreConnections,
  storeLifecycle,
  storeServices,
  StoreStartLog,
  VERSION,
} from '@nest-session/redis-events/internal';
import {
  END_NOTIFICATIONS,
  type EndNotifications,
  keepingRules,
  ofSessionModule,
  REQUEST_SESSION_SCRIPTS,
  SESSION_REPOSITORY_OPTIONS,
  SessionExpirationSweeper,
  SessionPartitions,
  SessionScripts,
  SHADOW_KEY_LISTENER,
  shownDetails,
  shownFacts,
  sessionStoreProviders,
  STORE_EXPORTS,
  tracedPoller,
} from '@nest-session/redis/internal';
import { SharedKeys, type SpringMode } from './keys/spring-keys.js';
import { SpringSessionRepository } from './read/spring-session.repository.js';
import { SharedEventProducer } from './shared/shared-event-producer.js';
import { SharedSessionListener } from './shared/shared-session.listener.js';
import { SharedSessionRepository } from './shared/shared-session.repository.js';
import { SharedSessionSweeper } from './shared/shared-session.sweeper.js';
import { SpringApplicationCheck } from './shared/spring-application.check.js';
import {
  MODULE,
  problemsWithSpring,
  type ResolvedSpringSessionOptions,
  resolveSpringSessionOptions,
  SPRING_SESSION_OPTIONS,
  type SpringSessionModuleOptions,
} from './spring-session.options.js';

/** Implement it in a class that you pass to `forRootAsync()` as `useClass` or `useExisting`. */
export interface SpringSessionOptionsFactory {
  /** Returns the options, or a promise of them. Called once, at start. */
  createSpringSessionOptions(): SpringSessionModuleOptions | Promise<SpringSessionModuleOptions>;
}

const { ConfigurableModuleClass: SpringSessionModuleDefinition, MODULE_OPTIONS_TOKEN } =
  new ConfigurableModuleBuilder<SpringSessionModuleOptions>({ moduleName: 'SpringSession' })
    .setClassMethodName('forRoot')
    .setFactoryMethodName('createSpringSessionOptions')
    .setExtras({}, (definition) => ({ ...explainInjection(MODULE, definition), global: true }))
    .build();

@Injectable()
class SpringStartLog extends StoreStartLog {
  constructor(
    @Inject(SPRING_SESSION_OPTIONS) private readonly options: ResolvedSpringSessionOptions,
    // Optional, so that the error names the missing module.
    @Optional() @Inject(SESSION_OPTIONS) private readonly sessions: ResolvedSessionOptions,
    @Inject(REDIS_CONNECTIONS) connections: RedisConnections,
  ) {
    super(connections);
  }

  protected tell(server: string): void {
    const { mode, connection, springNamespace, commandTimeout, requireAtStart } = this.options;
    const isRead = mode === 'read';
    const inEffect = isRead ? { commandTimeout, requireAtStart } : { ...this.options, grace: undefined };
    const facts = shownFacts({ ...inEffect, namespace: springNamespace }, this.sessions, { mode });
    const what = isRead ? 'reads the sessions of Spring Session' : 'shares sessions with Spring Session';
    const details = shownDetails(inEffect, this.sessions);
    logger.log(`nest-session ${VERSION} ${what} in ${server}: ${shownAddress(connection)}; ${facts}`);
    logger.verbose(`Options that are in effect, on Node.js ${process.version}: ${details}`);
  }
}

/** What runs in the background. Spring itself notices the ends of sessions that are only read. */
const SERVICES: Readonly<Record<SpringMode, ServicesOfStore>> = {
  read: {
    foundation: [StoreConnections],
    sources: [SpringStartLog],
    listeners: [KeyspaceNotificationListener],
    handling: [],
  },
  shared: storeServices({
    checks: [SpringApplicationCheck],
    before: [SharedSessionListener],
    after: [DuePoller],
    log: SpringStartLog,
    listeners: [KeyspaceNotificationListener],
  }),
};

const OF_SESSION_MODULE = { token: SESSION_OPTIONS, optional: true };
const BACKGROUND = connectionToken('background');

const VALUES: Provider[] = [
  {
    provide: SessionPartitions,
    inject: [SPRING_SESSION_OPTIONS, OF_SESSION_MODULE],
    // One: the keys of Spring cannot be spread.
    useFactory: ({ namespace, mode }: ResolvedSpringSessionOptions, sessions: ResolvedSessionOptions | undefined) =>
      new SessionPartitions(namespace, 1, {
        module: MODULE,
        ...(sessions && { ids: sessions.ids.form, limits: sessions.maxSessions !== undefined }),
        ...(mode === 'shared' && { holds: 'shared-sessions' }),
      }),
  },
  {
    provide: REQUEST_SESSION_SCRIPTS,
    inject: [SessionPartitions, SPRING_SESSION_OPTIONS],
    useFactory: (partitions: SessionPartitions, options: ResolvedSpringSessionOptions) => {
      // For what counts sessions by our own list of them.
      const rules = keepingRules({ ...options, expirations: { store: 'buckets', timer: undefined } }, partitions);
      return scriptsOn((client) => new SessionScripts(client, partitions, rules));
    },
  },
  {
    provide: END_NOTIFICATIONS,
    inject: [SPRING_SESSION_OPTIONS, SHADOW_KEY_LISTENER],
    useFactory: ({ mode }: ResolvedSpringSessionOptions, listener: KeyspaceNotificationListener): EndNotifications => ({
      get state() {
        return mode === 'read' ? 'off' : listener.health.state;
      },
    }),
  },
  {
    provide: SESSION_REPOSITORY_OPTIONS,
    inject: [SPRING_SESSION_OPTIONS, OF_SESSION_MODULE],
    useFactory: repositoryOptions,
  },
];

/** In each mode. They connect and start nothing: the lifecycle starts those of its mode. */
const PROVIDERS: Provider[] = [
  ...sessionStoreProviders<SpringSessionModuleOptions>({
    module: MODULE,
    given: MODULE_OPTIONS_TOKEN,
    options: SPRING_SESSION_OPTIONS,
    resolve: resolveSpringSessionOptions,
    producer: SharedEventProducer,
    sweeper: { useExisting: SharedSessionSweeper },
  }),
  ...VALUES,
  SpringSessionRepository,
  {
    provide: SharedKeys,
    inject: [SPRING_SESSION_OPTIONS, SessionPartitions, BACKGROUND],
    useFactory: ({ springNamespace }: ResolvedSpringSessionOptions, { all }: SessionPartitions, client: Redis) =>
      new SharedKeys(springNamespace, all[0]!, client.options.db ?? 0),
  },
  SharedSessionRepository,
  {
    provide: IndexedSessionRepository,
    inject: [SPRING_SESSION_OPTIONS, OF_SESSION_MODULE, SpringSessionRepository, SharedSessionRepository],
    useFactory: (
      { mode }: ResolvedSpringSessionOptions,
      sessions: ResolvedSessionOptions | undefined,
      read: SpringSessionRepository,
      shared: SharedSessionRepository,
    ): IndexedSessionRepository => {
      const problems = sessions ? problemsWithSpring(mode, sessions) : [];
      if (problems.length > 0) throw new InvalidSessionOptionsError(MODULE, problems);
      return mode === 'read' ? read : shared;
    },
  },
  SharedSessionSweeper,
  {
    provide: DuePoller,
    inject: [SharedSessionSweeper, SessionPartitions, PartitionSignals],
    useFactory: tracedPoller,
  },
  {
    provide: SessionExpirationSweeper,
    inject: [
      BACKGROUND,
      REQUEST_SESSION_SCRIPTS,
      SessionPartitions,
      SPRING_SESSION_OPTIONS,
      BackgroundLimiter,
      SharedSessionSweeper,
    ],
    // The ends are not noted in our form, and a script for that would report live sessions.
    useFactory: (
      client: Redis,
      scripts: ScriptsOn<SessionScripts>,
      partitions: SessionPartitions,
      options: ResolvedSpringSessionOptions,
      limiter: BackgroundLimiter,
      shared: SharedSessionSweeper,
    ) => {
      const stores = options.mode === 'shared' ? [shared] : [];
      return new SessionExpirationSweeper(client, scripts(client), partitions, options, limiter, stores);
    },
  },
  SharedSessionListener,
  SpringApplicationCheck,
  SpringStartLog,
  storeLifecycle<ResolvedSpringSessionOptions>(({ mode }) => SERVICES[mode]),
];

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

/**
 * Finds the sessions of `SessionModule` where Spring Session keeps them, in place of `RedisSessionModule`. It is
 * global: import it once, in the root module, with `forRoot()` or `forRootAsync()`. In a test, replace it by its name:
 * `overrideModule(SpringSessionModule)`.
 */
@Global()
@Module({ providers: PROVIDERS, exports: STORE_EXPORTS })
export class SpringSessionModule {
  /** For the imports of the root module. Wrong options fail the start with an error that names all problems. */
  static forRoot(options: SpringSessionModuleOptions): DynamicModule {
    return SpringSessionOptionsModule.forRoot(options);
  }

  /** The same with injected options, by `useFactory`, `useClass` or `useExisting`. */
  static forRootAsync(
    options: ConfigurableModuleAsyncOptions<SpringSessionModuleOptions, 'createSpringSessionOptions'>,
  ): DynamicModule {
    return SpringSessionOptionsModule.forRootAsync(options);
  }
}

/** Holds the options: see `RedisSessionModule`. */
@Module({ imports: [SpringSessionModule], exports: [MODULE_OPTIONS_TOKEN] })
class SpringSessionOptionsModule extends SpringSessionModuleDefinition {
  /** @internal Import it with `forRoot()`. */
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    super();
    assertConfiguredOnce(modules, SpringSessionOptionsModule, MODULE);
  }
}
