import {
  type ConfigurableModuleAsyncOptions,
  type DynamicModule,
  Global,
  Inject,
  Module,
  type Provider,
  Injectable,
} from '@nestjs/common';
import { ModulesContainer, ModuleRef } from '@nestjs/core';
import { assertConfiguredOnce, givenOptions } from '@nest-session/core/internal';
import { KeyspaceNotificationListener, keyEventListener } from '../notifications/keyspace-notification.listener.js';
import { RedisEventHandlerModule, RedisEventProducer } from './redis-event-producer.js';
import { RedisEventGroups, RedisEvents } from './redis-events.js';
import {
  REDIS_EVENTS_MODULE_OPTIONS,
  RedisEventsModuleDefinition,
  type RedisEventsModuleOptions,
  REDIS_EVENTS_OPTIONS,
  type ResolvedRedisEventsOptions,
  resolveRedisEventsOptions,
} from '../configuration/redis-events.options.js';
import { CLEANUP_PROVIDERS, CLEANUP_SCHEDULE, type CleanupSchedule, CleanupJob } from '../cleanup/cleanup.job.js';
import { DueSweeper } from '../cleanup/due.sweeper.js';
import { CONNECTION_PROVIDERS, SHARED_CONNECTIONS } from '../namespace/connection.providers.js';
import {
  CONNECTION_OPTIONS,
  CONNECTIONS_TO_SHARE,
  type ConnectionsToShare,
  REDIS_CONNECTIONS,
  type RedisConnections,
} from '../connection/redis-connections.js';
import { DELIVERY_PROVIDERS } from '../delivery/delivery.providers.js';
import { DELIVERY_OPTIONS } from '../delivery/delivery-rules.js';
import { EventProducer } from '../delivery/event-producer.js';
import { ContentStartLog } from '../lifecycle/store-start.log.js';
import { PartitionKeys, type NamespaceOwner, Partitions } from '../partitions/partitions.js';
import { LivingInstances } from '../namespace/living-instances.js';
import { PartitionSignals } from '../connection/partition-signals.js';
import { StoreConnections } from '../namespace/store-connections.js';
import { EventBroadcaster } from '../delivery/event.broadcaster.js';
import { EventConsumer } from '../delivery/event.consumer.js';
import { type ServicesOfStore, StoreLifecycle } from '../lifecycle/store.lifecycle.js';

const OF_EVENTS: NamespaceOwner = { holds: 'events', module: 'RedisEventsModule' };

const CLEANUP: CleanupSchedule = { name: 'redis-event-cleanup', cron: '0 * * * * *' };

/** Nothing becomes due: events are recorded by calls. */
const NOTHING_DUE: DueSweeper = { what: 'events', sweep: () => Promise.resolve() };

/** All providers of `RedisEventsModule`. They connect and start nothing. */
export const REDIS_EVENTS_PROVIDERS: Provider[] = [
  {
    provide: REDIS_EVENTS_OPTIONS,
    inject: [ModuleRef, { token: CONNECTIONS_TO_SHARE, optional: true }],
    useFactory: resolveOptions,
  },
  { provide: CONNECTION_OPTIONS, useExisting: REDIS_EVENTS_OPTIONS },
  { provide: DELIVERY_OPTIONS, useExisting: REDIS_EVENTS_OPTIONS },
  ...SHARED_CONNECTIONS,
  ...CONNECTION_PROVIDERS,
  keyEventListener(KeyspaceNotificationListener, 'notifications'),
  { provide: Partitions, inject: [REDIS_EVENTS_OPTIONS], useFactory: partitionsOf },
  { provide: CLEANUP_SCHEDULE, useValue: CLEANUP },
  { provide: DueSweeper, useValue: NOTHING_DUE },
  RedisEventProducer,
  { provide: EventProducer, useExisting: RedisEventProducer },
  ...CLEANUP_PROVIDERS,
  ...DELIVERY_PROVIDERS,
  ContentStartLog,
  RedisEvents,
  RedisEventGroups,
];

async function resolveOptions(moduleRef: ModuleRef, shared?: ConnectionsToShare): Promise<ResolvedRedisEventsOptions> {
  const options = await givenOptions<RedisEventsModuleOptions>(
    moduleRef,
    REDIS_EVENTS_MODULE_OPTIONS,
    'RedisEventsModule',
  );
  return resolveRedisEventsOptions(options, shared?.address);
}

function partitionsOf({ namespace, partitions }: ResolvedRedisEventsOptions): Partitions {
  return new Partitions(namespace, partitions, PartitionKeys, OF_EVENTS);
}

const SERVICES: ServicesOfStore = {
  foundation: [StoreConnections, LivingInstances],
  // After all that can refuse the start: the log.
  sources: [PartitionSignals, CleanupJob, ContentStartLog],
  listeners: [KeyspaceNotificationListener],
  handling: [EventConsumer, EventBroadcaster],
};

/** Starts the background work of events when the application is complete, and ends it. */
@Injectable()
export class RedisEventsLifecycle extends StoreLifecycle {
  constructor(
    @Inject(ModuleRef) providers: ModuleRef,
    @Inject(REDIS_CONNECTIONS) connections: RedisConnections,
    @Inject(REDIS_EVENTS_OPTIONS) { commandTimeout }: ResolvedRedisEventsOptions,
  ) {
    super(providers, connections, SERVICES, commandTimeout);
  }
}

/**
 * Keeps events of the application in Redis until every group has handled them, and listens to key events of Redis. It
 * is global: import it once, in the root module, with `forRoot()` or `forRootAsync()`. It needs no sessions. Without an
 * address in its options it uses the connections of `RedisSessionModule`, where that is imported. In a test, replace it
 * by its name: `overrideModule(RedisEventsModule)`.
 */
@Global()
@Module({
  imports: [RedisEventHandlerModule],
  providers: [...REDIS_EVENTS_PROVIDERS, RedisEventsLifecycle],
  exports: [RedisEvents, RedisEventGroups, KeyspaceNotificationListener],
})
export class RedisEventsModule {
  /**
   * The module with these options, for the imports of the root module. Wrong options fail the start with an
   * InvalidSessionOptionsError that names all problems.
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
