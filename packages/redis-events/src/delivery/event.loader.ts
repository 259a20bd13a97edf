import { Inject, Injectable } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { InjectConnection } from '../connection/redis-connections.js';
import { isReply } from '../connection/reply.errors.js';
import { dataKeyOf, fieldOf, type StreamEntry, textsIn } from '../scripts/stream/stream-entry.js';
import { EventProducer } from './event-producer.js';

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
