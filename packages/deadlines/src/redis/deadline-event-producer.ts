import { Inject, Injectable } from '@nestjs/common';
import { EventHandlingError, readData } from '@nest-session/core/internal';
import type { Deadline } from '../deadlines/deadline.js';
import { DeadlineEvent } from '../deadlines/deadline-event.js';
import { DeadlineDispatcher, shownDeadline } from '../deadlines/deadline.dispatcher.js';
import { DeadlineDataError } from '../deadlines/deadline.errors.js';
import {
  type EntryKind,
  EventProducer,
  fieldOf,
  type HandlersFailure,
  nameOf,
  type StreamEntry,
} from '@nest-session/redis-events/internal';
import { DeadlineEncryption } from './deadline-encryption.js';
import { REDIS_DEADLINE_OPTIONS, type ResolvedRedisDeadlineOptions } from './redis-deadline.options.js';

/** The entries that fire-deadlines adds. They bring their data; groups and broadcasts want them by their names. */
export const DEADLINE_ENTRIES: EntryKind = { types: [], makingRoom: [], onDemand: [], dueSets: ['due'] };

/** Deadlines that have come, for the delivery. */
@Injectable()
export class DeadlineEventProducer extends EventProducer<DeadlineEvent> {
  readonly kind = DEADLINE_ENTRIES;
  readonly groupsClass = 'DeadlineEvents';

  constructor(
    @Inject(DeadlineDispatcher) readonly handlers: DeadlineDispatcher,
    @Inject(DeadlineEncryption) private readonly encryption: DeadlineEncryption,
    @Inject(REDIS_DEADLINE_OPTIONS) private readonly options: Pick<ResolvedRedisDeadlineOptions, 'serializer'>,
  ) {
    super();
  }

  toEvent(entry: StreamEntry, _data: unknown, attempt: number): DeadlineEvent | undefined {
    if (fieldOf(entry, 'type') !== 'deadline') return undefined;
    const text = (name: string) => fieldOf(entry, name) ?? '';
    const [id, name, key] = [text('id'), text('name'), text('key')];
    const read = () => this.#dataOf(entry, { id, name, key });
    return new DeadlineEvent<Deadline<unknown>>({
      id,
      name,
      key,
      get data() {
        return read();
      },
      dueAt: Number(text('due')),
      at: Number(text('at')),
      attempt,
      traceparent: fieldOf(entry, 'traceparent'),
    });
  }

  shownIdOf(entry: StreamEntry): string {
    const [id, name] = [fieldOf(entry, 'id'), fieldOf(entry, 'name')];
    return id === undefined || name === undefined ? nameOf(entry) : shownDeadline({ id, name });
  }

  /** During a deployment, other instances of the group may have handlers that this one lacks, and must not lose. */
  override missingHandlerOf({ name }: DeadlineEvent): string | undefined {
    return this.handlers.wantedTypes().includes(name) ? undefined : name;
  }

  failureOf(error: unknown): HandlersFailure | undefined {
    return error instanceof EventHandlingError ? error : undefined;
  }

  /** @throws DeadlineDataError */
  #dataOf(entry: StreamEntry, deadline: { id: string; name: string; key: string }): unknown {
    const stored = fieldOf(entry, 'value');
    if (stored === undefined) return undefined;
    const text = this.encryption.decrypted({ text: stored, dataKey: fieldOf(entry, 'dataKey') }, deadline);
    return readData(deadline.name, text, this.options.serializer, DeadlineDataError);
  }
}
