import { Inject, Injectable } from '@nestjs/common';
import { EventHandlingError, readData } from '@nest-session/core/internal';
import { EventProducer, type HandlersFailure } from '../delivery/event-producer.js';
import { type EntryKind, fieldOf, nameOf, type StreamEntry } from '../scripts/stream/stream-entry.js';
import { RedisEvent, RedisEventDataError } from './redis-event.js';
import { RedisEventDispatcher, shownRedisEvent } from './redis-event.dispatcher.js';
import { REDIS_EVENTS_OPTIONS, type ResolvedRedisEventsOptions } from '../configuration/redis-events.options.js';

/** The entries that record-event adds. They bring their data; groups and broadcasts want them by their types. */
const ENTRIES: EntryKind = { types: [], makingRoom: [], onDemand: [], dueSets: [] };

/** Events of the application, for the delivery. */
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
