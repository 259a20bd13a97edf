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
import { DiscoveryModule, DiscoveryService, MetadataScanner, ModulesContainer } from '@nestjs/core';
import {
  assertConfiguredOnce,
  type HandledKind,
  NamedEventDispatcher,
  readData,
  SESSION_TELEMETRY,
  type SessionTelemetry,
  startLast,
} from '@nest-session/core/internal';
import type { DueSweeper } from '../cleanup/due.sweeper.js';
import {
  REDIS_EVENTS_MODULE_OPTIONS,
  REDIS_EVENTS_OPTIONS,
  RedisEventsModuleDefinition,
  type RedisEventsModuleOptions,
  type ResolvedRedisEventsOptions,
  resolveRedisEventsOptions,
} from '../configuration/redis-events.options.js';
import { EventProducer } from '../delivery/event-producer.js';
import { storeLifecycle, storeProviders, storeServices } from '../lifecycle/store-module.js';
import { ContentStartLog } from '../lifecycle/store.lifecycle.js';
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
}

const OF_EVENTS: NamespaceOwner = { holds: 'events', module: 'RedisEventsModule' };

/** Nothing becomes due: events are recorded by calls. */
const NOTHING_DUE: DueSweeper = { what: 'events', sweep: () => Promise.resolve() };

const PROVIDERS: Provider[] = [
  ...storeProviders<RedisEventsModuleOptions>({
    module: 'RedisEventsModule',
    given: REDIS_EVENTS_MODULE_OPTIONS,
    options: REDIS_EVENTS_OPTIONS,
    resolve: resolveRedisEventsOptions,
    usesShared: true,
    partitions: undefined,
    producer: RedisEventProducer,
    sweeper: { useValue: NOTHING_DUE },
    cleanupJob: 'redis-event-cleanup',
  }),
  {
    provide: Partitions,
    inject: [REDIS_EVENTS_OPTIONS],
    useFactory: ({ namespace, partitions }: ResolvedRedisEventsOptions) =>
      new Partitions(namespace, partitions, PartitionKeys, OF_EVENTS),
  },
  keyEventListener(KeyspaceNotificationListener, 'notifications'),
  ContentStartLog,
  RedisEvents,
  RedisEventGroups,
  storeLifecycle(() => storeServices({ log: ContentStartLog, listeners: [KeyspaceNotificationListener] })),
];

/**
 * Keeps events of the application in Redis until every group has handled them, and listens to key events of Redis. It
 * is global, and needs no sessions: import it once, in the root module. Without an address in its options it uses the
 * connections of `RedisSessionModule`. In a test, replace it by `overrideModule(RedisEventsModule)`.
 */
@Global()
@Module({
  imports: [RedisEventHandlerModule],
  providers: PROVIDERS,
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
