import { Inject, Injectable, Module, Optional } from '@nestjs/common';
import {
  EventHandlingError,
  type HandledKind,
  NamedEventDispatcher,
  readData,
  SESSION_TELEMETRY,
  type SessionTelemetry,
  startLast,
} from '@nest-session/core/internal';
import { DiscoveryModule, DiscoveryService, MetadataScanner, ModulesContainer } from '@nestjs/core';
import { EventProducer, type HandlersFailure } from '../delivery/event-producer.js';
import { type EntryKind, fieldOf, nameOf, type StreamEntry } from '../scripts/stream/stream-entry.js';
import { REDIS_EVENT_MARKS, RedisEvent, RedisEventDataError } from './redis-event.js';
import { REDIS_EVENTS_OPTIONS, type ResolvedRedisEventsOptions } from '../configuration/redis-events.options.js';

const EVENTS: HandledKind<RedisEvent> = {
  what: 'events',
  module: 'RedisEventsModule',
  marks: REDIS_EVENT_MARKS,
  nameOf: ({ type }) => type,
  shown: shownRedisEvent,
  contextOf: ({ id: eventId, type, at, attempt, traceparent }) => ({ type, eventId, at, attempt, traceparent }),
};

@Injectable()
export class RedisEventDispatcher extends NamedEventDispatcher<RedisEvent> {
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
export class RedisEventHandlerModule {
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    startLast(modules, RedisEventHandlerModule);
  }
}

function shownRedisEvent({ type, id }: Pick<RedisEvent, 'type' | 'id'>): string {
  return `${JSON.stringify(type)} (${id})`;
}

const ENTRIES: EntryKind = { types: [], makingRoom: [], onDemand: [], dueSets: [] };

@Injectable()
export class RedisEventProducer extends EventProducer<RedisEvent> {
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
