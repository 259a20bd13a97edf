import { Inject, Injectable } from '@nestjs/common';
import type { EventHandlingError, NamedEventDispatcher } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import { dataKeyOf, type EntryKind, fieldOf, type StreamEntry, textsIn } from '../scripts/stream/stream-entry.js';
import { InjectConnection } from '../connection/redis-connections.js';
import { isReply } from '../connection/server-faults.js';

/** What an instance does with the events of a producer: what the delivery uses of a dispatcher. */
export type EventHandlers<Event> = Pick<
  NamedEventDispatcher<Event>,
  | 'hasHandlers'
  | 'handlerNames'
  | 'hasBroadcastHandlers'
  | 'wantedTypes'
  | 'ready'
  | 'dispatch'
  | 'broadcast'
  | 'reportGap'
  | 'reportDeadLetter'
  | 'idle'
  | 'giveUp'
> & {
  /** Calls the function, once, when there is the first broadcast handler after all. Unset: there will be none. */
  whenBroadcastIsWanted?(begin: () => Promise<void>): void;
};

/** The handlers of an event that failed, each with its error, and the names of those that succeeded. */
export type HandlersFailure = Pick<EventHandlingError, 'failed' | 'succeeded'>;

/**
 * One kind of events. Its scripts add entries to the stream of a partition; this says what the entries are, and who
 * handles them. The delivery knows nothing else of them.
 */
export abstract class EventProducer<Event = unknown> {
  abstract readonly kind: EntryKind;
  abstract readonly handlers: EventHandlers<Event>;
  /** The class that lists groups and dead letters, as log lines name it. */
  abstract readonly groupsClass: string;

  /** The event of an entry with its data, empty when that is lost. Undefined: this version does not know the type. */
  abstract toEvent(entry: StreamEntry, data: Readonly<Record<string, string>>, attempt: number): Event | undefined;

  /** The event of an entry as log lines name it. */
  abstract shownIdOf(entry: StreamEntry): string;

  /**
   * What another instance of the group may handle an event for that has no handler here, as `wantedTypes()` says it.
   * Undefined: there is one here, or an event without a handler is nobody's.
   */
  missingHandlerOf(_event: Event): string | undefined {
    return undefined;
  }

  /** Which handlers failed, when `dispatch()` has rejected with such an error. Undefined: no handler did. */
  abstract failureOf(error: unknown): HandlersFailure | undefined;
}

/** Makes the event of an entry, with the data in the entry if there is any, else with the data that it refers to. */
@Injectable()
export class EventLoader<Event = unknown> {
  constructor(
    @InjectConnection('background') private readonly client: Redis,
    @Inject(EventProducer) private readonly producer: Pick<EventProducer<Event>, 'kind' | 'toEvent'>,
  ) {}

  /** Undefined for an entry of a type that this version does not know, such as one of a newer version. */
  async load(entry: StreamEntry, attempt = 1): Promise<Event | undefined> {
    const own = fieldOf(entry, 'data');
    const data = own === undefined ? await this.#dataOf(entry) : textsIn(own);
    return this.producer.toEvent(entry, data, attempt);
  }

  async #dataOf(entry: StreamEntry): Promise<Record<string, string>> {
    const key = dataKeyOf(this.producer.kind, entry);
    if (key === undefined) return {};
    return this.client.hgetall(key).catch((error: unknown) => {
      // A stray key in its place is no data.
      if (isReply(error, 'WRONGTYPE')) return {};
      throw error;
    });
  }
}
