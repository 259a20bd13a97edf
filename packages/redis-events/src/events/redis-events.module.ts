import {
  type ConfigurableModuleAsyncOptions,
  type DynamicModule,
  Global,
  Inject,
  Module,
  type Provider,
} from '@nestjs/common';
import { ModuleRef, ModulesContainer } from '@nestjs/core';
import { assertConfiguredOnce, givenOptions } from '@nest-session/core/internal';
import { CLEANUP_PROVIDERS, CLEANUP_SCHEDULE, CleanupJob, type CleanupSchedule } from '../cleanup/cleanup.job.js';
import { DueSweeper } from '../cleanup/due.sweeper.js';
import {
  REDIS_EVENTS_MODULE_OPTIONS,
  REDIS_EVENTS_OPTIONS,
  RedisEventsModuleDefinition,
  type RedisEventsModuleOptions,
  type ResolvedRedisEventsOptions,
  resolveRedisEventsOptions,
} from '../configuration/redis-events.options.js';
import { PartitionSignals } from '../connection/partition-signals.js';
import { CONNECTION_OPTIONS, CONNECTIONS_TO_SHARE, type ConnectionsToShare } from '../connection/redis-connections.js';
import { DELIVERY_OPTIONS } from '../configuration/event-rules.js';
import { DELIVERY_PROVIDERS } from '../delivery/delivery.providers.js';
import { EventProducer } from '../delivery/event-producer.js';
import { EventBroadcaster } from '../delivery/event.broadcaster.js';
import { EventConsumer } from '../delivery/event.consumer.js';
import { ContentStartLog } from '../lifecycle/store-start.log.js';
import { storeLifecycle } from '../lifecycle/store.lifecycle.js';
import { CONNECTION_PROVIDERS, SHARED_CONNECTIONS } from '../namespace/connection.providers.js';
import { LivingInstances } from '../namespace/living-instances.js';
import { StoreConnections } from '../namespace/store-connections.js';
import { keyEventListener, KeyspaceNotificationListener } from '../notifications/keyspace-notification.listener.js';
import { type NamespaceOwner, PartitionKeys, Partitions } from '../partitions/partitions.js';
import { RedisEventHandlerModule, RedisEventProducer } from './redis-event-producer.js';
import { RedisEventGroups, RedisEvents } from './redis-events.js';

const OF_EVENTS: NamespaceOwner = { holds: 'events', module: 'RedisEventsModule' };

const CLEANUP: CleanupSchedule = { name: 'redis-event-cleanup', cron: '0 * * * * *' };

/** Nothing becomes due: events are recorded by calls. */
const NOTHING_DUE: DueSweeper = { what: 'events', sweep: () => Promise.resolve() };

const REDIS_EVENTS_PROVIDERS: Provider[] = [
  {
    provide: REDIS_EVENTS_OPTIONS,
    inject: [ModuleRef, { token: CONNECTIONS_TO_SHARE, optional: true }],
    useFactory: async (moduleRef: ModuleRef, shared?: ConnectionsToShare): Promise<ResolvedRedisEventsOptions> =>
      resolveRedisEventsOptions(
        await givenOptions<RedisEventsModuleOptions>(moduleRef, REDIS_EVENTS_MODULE_OPTIONS, 'RedisEventsModule'),
        shared?.address,
      ),
  },
  { provide: CONNECTION_OPTIONS, useExisting: REDIS_EVENTS_OPTIONS },
  { provide: DELIVERY_OPTIONS, useExisting: REDIS_EVENTS_OPTIONS },
  ...SHARED_CONNECTIONS,
  ...CONNECTION_PROVIDERS,
  keyEventListener(KeyspaceNotificationListener, 'notifications'),
  {
    provide: Partitions,
    inject: [REDIS_EVENTS_OPTIONS],
    useFactory: ({ namespace, partitions }: ResolvedRedisEventsOptions) =>
      new Partitions(namespace, partitions, PartitionKeys, OF_EVENTS),
  },
  { provide: CLEANUP_SCHEDULE, useValue: CLEANUP },
  { provide: DueSweeper, useValue: NOTHING_DUE },
  RedisEventProducer,
  { provide: EventProducer, useExisting: RedisEventProducer },
  ...CLEANUP_PROVIDERS,
  ...DELIVERY_PROVIDERS,
  ContentStartLog,
  RedisEvents,
  RedisEventGroups,
  storeLifecycle({
    foundation: [StoreConnections, LivingInstances],
    // After all that can refuse the start: the log.
    sources: [PartitionSignals, CleanupJob, ContentStartLog],
    listeners: [KeyspaceNotificationListener],
    handling: [EventConsumer, EventBroadcaster],
  }),
];

/**
 * Keeps events of the application in Redis until every group has handled them, and listens to key events of Redis. It
 * is global, and needs no sessions: import it once, in the root module. Without an address in its options it uses the
 * connections of `RedisSessionModule`. In a test, replace it by `overrideModule(RedisEventsModule)`.
 */
@Global()
@Module({
  imports: [RedisEventHandlerModule],
  providers: REDIS_EVENTS_PROVIDERS,
  exports: [RedisEvents, RedisEventGroups, KeyspaceNotificationListener],
})
export class RedisEventsModule {
  /**
   * For the imports of the root module. Wrong options fail the start with an InvalidSessionOptionsError that names all.
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
