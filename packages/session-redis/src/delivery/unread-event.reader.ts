import { Inject, Injectable } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { CONSUMER_IDENTITY } from '../configuration/redis-session.tokens.js';
import { closeConnection } from '../connection/close-connection.js';
import { readStreams } from '../connection/read-streams.js';
import { InjectConnection } from '../connection/redis-connections.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import type { ConsumerIdentity } from '../scripts/delivery/delivery.scripts.js';
import type { StreamReply } from '../scripts/stream/event-stream.scripts.js';
import { PartitionRoundRobin } from './partition-round-robin.js';
import { type StreamEntry, toStreamEntry } from './stream-entry.js';
import { byPosition } from './stream-position.js';

// Milliseconds that a partition waits for its turn at most, while there is nothing to read.
const LONGEST_ROUND = 250;

/**
 * Reads new entries for a group from the streams of all partitions. Redis limits the entries per stream, not in all:
 * with fewer free places than partitions, the partitions take turns.
 */
@Injectable()
export class UnreadEventReader {
  readonly #turns: PartitionRoundRobin;
  /** Number of partitions in a row that had nothing. */
  #quiet = 0;

  constructor(
    /** Blocks while it waits for entries, so nothing else uses it. */
    @InjectConnection('reader') private readonly client: Redis,
    @Inject(SessionPartitions) private readonly partitions: SessionPartitions,
    @Inject(CONSUMER_IDENTITY) private readonly member: ConsumerIdentity,
  ) {
    this.#turns = new PartitionRoundRobin(partitions.all);
  }

  /** Up to `count` entries in recorded order. Waits up to `patience` milliseconds while no partition has one. */
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

  /** Ends all reading. Resolves when Redis executes no read of this instance any more. */
  close(): Promise<void> {
    return closeConnection(this.client);
  }

  /** `wait`: milliseconds, never 0, with which Redis would wait for ever; undefined: do not wait. */
  async #ask(
    turn: readonly SessionKeys[],
    count: number,
    wait?: number,
  ): Promise<[key: string, found: StreamReply[]][]> {
    const { group, consumer } = this.member;
    return readStreams(this.client, turn, wait, async (some, block) => {
      const keys = some.map(({ events }) => events);
      const streams = ['STREAMS', ...keys, ...keys.map(() => '>')];
      const limits = ['COUNT', count, ...(block === undefined ? [] : ['BLOCK', block])];
      const args = ['GROUP', group, consumer, ...limits, ...streams] as Parameters<Redis['xreadgroup']>;
      return (await this.client.xreadgroup(...args)) as [string, StreamReply[]][] | null;
    });
  }

  /** Milliseconds until other partitions must have their turn. */
  #longestWait(turn: number): number {
    const turns = Math.ceil(this.partitions.all.length / turn);
    return turns === 1 ? Infinity : Math.ceil(LONGEST_ROUND / turns);
  }
}
