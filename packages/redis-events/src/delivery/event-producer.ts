import { Inject, Injectable } from '@nestjs/common';
import type { NamedEventDispatcher } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import { dataKeyOf, type EntryKind, fieldOf, type StreamEntry, textsIn } from '../scripts/stream/stream-entry.js';
import { InjectConnection } from '../connection/redis-connections.js';
import { ifStray } from '../connection/server-faults.js';

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

export abstract class EventProducer<Event = unknown> {
  abstract readonly kind: EntryKind;
  abstract readonly handlers: EventHandlers<Event>;
  abstract readonly groupsClass: string;

  /** The event of an entry with its data, empty when that is lost. Undefined: this version does not know the type. */
  abstract toEvent(entry: StreamEntry, data: Readonly<Record<string, string>>, attempt: number): Event | undefined;

  abstract shownIdOf(entry: StreamEntry): string;

  /** What another instance of the group may have the handler for that is missing here, as `wantedTypes()` says it. */
  missingHandlerOf(_event: Event): string | undefined {
    return undefined;
  }
}

@Injectable()
export class EventLoader<Event = unknown> {
  constructor(
    @InjectConnection('background') private readonly client: Redis,
    @Inject(EventProducer) private readonly producer: Pick<EventProducer<Event>, 'kind' | 'toEvent'>,
  ) {}

  /** Undefined for an entry of a type that this version does not know, such as one of a newer version. */
  async load(entry: StreamEntry, attempt = 1): Promise<Event | undefined> {
    const own = fieldOf(entry, 'data');
    const key = dataKeyOf(this.producer.kind, entry);
    const kept = own === undefined && key !== undefined ? await this.client.hgetall(key).catch(ifStray({})) : {};
    return this.producer.toEvent(entry, own === undefined ? kept : textsIn(own), attempt);
  }
}
