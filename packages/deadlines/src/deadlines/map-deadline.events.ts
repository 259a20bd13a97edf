import { hostname } from 'node:os';
import {
  assertLimit,
  type DeadLetterFilter,
  type RemoveGroupReply,
  type ReplayReply,
} from '@nest-session/core/internal';
import type { DeadlineDispatcher } from './deadline.dispatcher.js';
import { type DeadlineDeadLetter, DeadlineEvents, type DeadlineGroupInfo } from './deadline.events.js';
import { type MapDeadlineDelivery, MEMORY_GROUP } from './map-deadline-delivery.js';

const MOST_LISTED = 100;

/** The one group of `MapDeadlineModule`, which is there when the application has a handler, and its dead letters. */
export class MapDeadlineEvents extends DeadlineEvents {
  constructor(
    private readonly dispatcher: DeadlineDispatcher,
    private readonly delivery: MapDeadlineDelivery,
  ) {
    super();
  }

  async list(): Promise<DeadlineGroupInfo[]> {
    if (!this.dispatcher.hasHandlers) return [];
    const { pending, retrying, lostLetters } = this.delivery;
    return [
      {
        name: MEMORY_GROUP,
        lag: 0,
        oldestUnread: undefined,
        pending,
        retrying,
        dropped: 0,
        lostDeadLetters: lostLetters,
        consumers: [{ name: `${hostname()}:${process.pid}`, pending, idle: 0 }],
      },
    ];
  }

  async create(name: string): Promise<boolean> {
    if (name.trim() === '') throw new RangeError('The name of a group must not be empty');
    if (name !== MEMORY_GROUP || !this.dispatcher.hasHandlers) throw new RangeError(ONE_GROUP);
    return false;
  }

  async remove(name: string): Promise<RemoveGroupReply> {
    return name === MEMORY_GROUP && this.dispatcher.hasHandlers ? 'live' : 'unknown';
  }

  async deadLetters({
    group,
    after,
    limit = MOST_LISTED,
  }: DeadLetterFilter & { readonly after?: string; readonly limit?: number } = {}): Promise<DeadlineDeadLetter[]> {
    const number = after === undefined ? 0 : numberOf(after);
    assertLimit(limit);
    return this.#chosen({ group })
      .filter(({ id }) => Number(id) > number)
      .slice(0, limit);
  }

  async replay(id: string): Promise<ReplayReply> {
    return this.delivery.replay(id) ? 'replayed' : 'gone';
  }

  async replayAll(filter: DeadLetterFilter = {}): Promise<number> {
    return this.#chosen(filter).filter(({ id }) => this.delivery.replay(id)).length;
  }

  async discard(id: string): Promise<boolean> {
    return this.delivery.discard(id);
  }

  async discardAll(filter: DeadLetterFilter = {}): Promise<number> {
    return this.#chosen(filter).filter(({ id }) => this.delivery.discard(id)).length;
  }

  #chosen({ group = MEMORY_GROUP }: { readonly group?: string | undefined }): DeadlineDeadLetter[] {
    return group === MEMORY_GROUP ? this.delivery.deadLetters : [];
  }
}

function numberOf(id: string): number {
  if (!/^\d{1,15}$/.test(id)) throw new RangeError('`after` must be the id of a dead letter');
  return Number(id);
}

const ONE_GROUP =
  'Deadlines in memory have one group, "default", which handles what comes in this process: remove the call, or use ' +
  'RedisDeadlineModule of @nest-session/deadlines/redis';
