import { Inject, Injectable } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { CONSUMER_IDENTITY } from '../configuration/redis-session.tokens.js';
import { InjectConnection } from '../connection/redis-connections.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import type { ConsumerIdentity } from '../scripts/delivery/delivery.scripts.js';
import type { StreamReply } from '../scripts/stream/event-stream.scripts.js';
import { PartitionRoundRobin } from './partition-round-robin.js';
import { type StreamEntry, toStreamEntry } from './stream-entry.js';
import { byPosition } from './stream-position.js';

// While there is nothing to read, how long a partition waits at the most for its turn, in milliseconds.
const LONGEST_ROUND = 250;

/**
 * Reads what nobody of a group has been given yet, from the streams of all partitions. Redis limits how many entries it
 * gives of each stream, not of all: with fewer free places than partitions, those take turns.
 */
@Injectable()
export class UnreadEventReader {
  readonly #turns: PartitionRoundRobin;
  /** In how many partitions, one after the other, there was nothing. */
  #quiet = 0;

  constructor(
    /** Waits for entries, and is used for nothing else meanwhile. */
    @InjectConnection('reader') private readonly client: Redis,
    @Inject(SessionPartitions) private readonly partitions: SessionPartitions,
    @Inject(CONSUMER_IDENTITY) private readonly member: ConsumerIdentity,
  ) {
    this.#turns = new PartitionRoundRobin(partitions.all);
  }

  /** Up to `count` entries, in recorded order; waits up to `patience` milliseconds when there is none in any partition. */
  async read(count: number, patience: number): Promise<StreamEntry[]> {
    const turn = this.#turns.next(count);
    const isRoundQuiet = this.#quiet + turn.length >= this.partitions.all.length;
    const wait = isRoundQuiet ? Math.min(patience, this.#longestWait(turn.length)) : undefined;
    const reply = await this.#ask(turn, Math.floor(count / turn.length), wait);
    const entries = reply.flatMap(([key, found]) => {
      const partition = turn.find(({ events }) => events === key)!;
      return found.map((entry) => toStreamEntry(partition, entry));
    });
    this.#quiet = entries.length > 0 ? 0 : this.#quiet + turn.length;
    return entries.sort(byPosition);
  }

  /** Without `wait` only what is there; Redis takes a wait of 0 for one without end. */
  async #ask(
    turn: readonly SessionKeys[],
    count: number,
    wait?: number,
  ): Promise<[key: string, found: StreamReply[]][]> {
    const { group, consumer } = this.member;
    const keys = turn.map(({ events }) => events);
    const streams = ['STREAMS', ...keys, ...keys.map(() => '>')];
    const limits = ['COUNT', count, ...(wait === undefined ? [] : ['BLOCK', wait])];
    const args = ['GROUP', group, consumer, ...limits, ...streams] as Parameters<Redis['xreadgroup']>;
    return ((await this.client.xreadgroup(...args)) ?? []) as [string, StreamReply[]][];
  }

  /** Milliseconds until it must be the turn of other partitions. */
  #longestWait(turn: number): number {
    const turns = Math.ceil(this.partitions.all.length / turn);
    return turns === 1 ? Infinity : Math.ceil(LONGEST_ROUND / turns);
  }
}
