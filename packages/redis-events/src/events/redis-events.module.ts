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
import { DiscoveryModule, DiscoveryService, MetadataScanner, ModuleRef, ModulesContainer } from '@nestjs/core';
import {
  assertConfiguredOnce,
  EventHandlingError,
  givenOptions,
  type HandledKind,
  NamedEventDispatcher,
  readData,
  SESSION_TELEMETRY,
  type SessionTelemetry,
  startLast,
} from '@nest-session/core/internal';
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
import { EventProducer, type HandlersFailure } from '../delivery/event-producer.js';
import { EventBroadcaster } from '../delivery/event.broadcaster.js';
import { EventConsumer } from '../delivery/event.consumer.js';
import { ContentStartLog, storeLifecycle } from '../lifecycle/store.lifecycle.js';
import { CONNECTION_PROVIDERS, SHARED_CONNECTIONS, StoreConnections } from '../namespace/store-connections.js';
import { LivingInstances } from '../namespace/living-instances.js';
import { keyEventListener, KeyspaceNotificationListener } from '../notifications/keyspace-notification.listener.js';
import type { NamespaceOwner } from '../partitions/namespace.js';
import { PartitionKeys, Partitions } from '../partitions/partitions.js';
import { RedisEventGroups, RedisEvents } from './redis-events.js';
import { type EntryKind, fieldOf, nameOf, type StreamEntry } from '../scripts/stream/stream-entry.js';
import { REDIS_EVENT_MARKS, RedisEvent, RedisEventDataError } from './redis-event.js';

const EVENTS: HandledKind<RedisEvent> = {
  what: 'events',
  module: 'RedisEventsModule',
  marks: REDIS_EVENT_MARKS,
  nameOf: ({ type }) => type,
  shown: shownRedisEvent,
  contextOf: ({ id: eventId, type, at, attempt, traceparent }) => ({ type, eventId, at, attempt, traceparent }),
};

@Injectable()
class RedisEventDispatcher extends NamedEventDispatcher<RedisEvent> {
  constructor(
    @Inject(DiscoveryService) discovery: DiscoveryService,
    @Inject(MetadataScanner) scanner: MetadataScanner,
    @Optional() @Inject(SESSION_TELEMETRY) telemetry?: SessionTelemetry,
  ) {
    super(EVENTS, discovery, scanner, telemetry);
  }
}

/** Its handlers are ready after all hooks of the application. */
@Module({ imports: [DiscoveryModule], providers: [RedisEventDispatcher], exports: [RedisEventDispatcher] })
class RedisEventHandlerModule {
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    startLast(modules, RedisEventHandlerModule);
  }
}

function shownRedisEvent({ type, id }: Pick<RedisEvent, 'type' | 'id'>): string {
  return `${JSON.stringify(type)} (${id})`;
}

const ENTRIES: EntryKind = { types: [], makingRoom: [], onDemand: [], dueSets: [] };

@Injectable()
class RedisEventProducer extends EventProducer<RedisEvent> {
  readonly kind = ENTRIES;
  readonly groupsClass = 'RedisEventGroups';

  constructor(
    @Inject(RedisEventDispatcher) readonly handlers: RedisEventDispatcher,
    @Inject(REDIS_EVENTS_OPTIONS) private readonly options: Pick<ResolvedRedisEventsOptions, 'serializer'>,
  ) {
    super();
  }

  toEvent(entry: StreamEntry, _data: unknown, attempt: number): RedisEvent | undefined {
    const [id, type] = [fieldOf(entry, 'id'), fieldOf(entry, 'type')];
    if (id === undefined || type === undefined) return undefined;
    const read = () => readData(type, fieldOf(entry, 'value'), this.options.serializer, RedisEventDataError);
    return new RedisEvent({
      id,
      type,
      get data() {
        return read();
      },
      at: Number(fieldOf(entry, 'at')),
      attempt,
      traceparent: fieldOf(entry, 'traceparent'),
    });
  }

  shownIdOf(entry: StreamEntry): string {
    const [id, type] = [fieldOf(entry, 'id'), fieldOf(entry, 'type')];
    return id === undefined || type === undefined ? nameOf(entry) : shownRedisEvent({ id, type });
  }

  /** During a deployment, other instances of the group may have handlers that this one lacks, and must not lose. */
  override missingHandlerOf({ type }: RedisEvent): string | undefined {
    return this.handlers.wantedTypes().includes(type) ? undefined : type;
  }

  failureOf(error: unknown): HandlersFailure | undefined {
    return error instanceof EventHandlingError ? error : undefined;
  }
}

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
  /** For the imports of the root module. Wrong options fail its start with an InvalidSessionOptionsError. */
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
