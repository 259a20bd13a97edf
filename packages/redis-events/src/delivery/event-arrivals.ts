import { Inject, Injectable } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { CONSUMER_IDENTITY } from '../configuration/event-rules.js';
import { closeConnection } from '../connection/close-connection.js';
import { PartitionSignals } from '../connection/partition-signals.js';
import { REDIS_CONNECTIONS, type RedisConnections } from '../connection/redis-connections.js';
import { type PartitionKeys, Partitions } from '../partitions/partitions.js';
import type { ConsumerIdentity } from '../scripts/event-stream.scripts.js';
import { byPosition, type StreamEntry, type StreamReply, toStreamEntry } from '../scripts/stream/stream-entry.js';
import { type HeardSignals, PartitionReplies, PartitionTurns } from './partition-turns.js';

/**
 * Reads new entries for a group: with a single partition by a command that waits for them, with several when signals
 * tell of some, because no command waits for two slots. With fewer free places than partitions, they take turns.
 */
@Injectable()
export class UnreadEventReader {
  readonly #partitions: readonly PartitionKeys[];
  readonly #waiting: Redis | undefined;
  readonly #background: Redis;
  readonly #turns: PartitionTurns;
  readonly #replies = new PartitionReplies<readonly StreamEntry[]>(() => this.#turns.wake());
  /** Read, and not returned yet. */
  #entries: StreamEntry[] = [];
  #isClosed = false;

  constructor(
    @Inject(REDIS_CONNECTIONS) { reader, background }: Pick<RedisConnections, 'reader' | 'background'>,
    @Inject(Partitions) { all }: Pick<Partitions, 'all'>,
    @Inject(CONSUMER_IDENTITY) private readonly member: ConsumerIdentity,
    @Inject(PartitionSignals) signals: HeardSignals,
  ) {
    this.#partitions = all;
    this.#waiting = all.length === 1 ? reader : undefined;
    this.#background = background;
    this.#turns = eventTurns(all, signals, this.#replies.isFree);
  }

  /** Whether no partition that could not be read is left, after a read that has succeeded. */
  get isSettled(): boolean {
    return this.#replies.isSettled;
  }

  /**
   * Up to `count` entries in recorded order. Waits up to `patience` milliseconds for one; with 0, Redis would for ever.
   */
  async read(count: number, patience: number): Promise<StreamEntry[]> {
    if (this.#waiting) {
      const { group, consumer } = this.member;
      const [only] = this.#partitions as [PartitionKeys];
      const how = ['COUNT', count, 'BLOCK', patience, 'STREAMS', only.events, '>'] as const;
      return entriesIn(only, await this.#waiting.xreadgroup('GROUP', group, consumer, ...how));
    }
    const end = performance.now() + patience;
    while (!this.#isClosed) {
      if (this.#entries.length === 0) await this.#ask(count);
      this.#entries.push(...this.#replies.take().flat());
      if (this.#entries.length > 0) return this.#entries.sort(byPosition).splice(0, count);
      const left = end - performance.now();
      if (left <= 0) break;
      await this.#turns.wait(left);
    }
    return [];
  }

  /** Ends all reading. Resolves when Redis executes no read of this instance any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#turns.wake();
    await (this.#waiting ? closeConnection(this.#waiting) : this.#replies.untilFree());
  }

  async #ask(count: number): Promise<void> {
    const turn = this.#replies.hasNews ? [] : this.#turns.take(count);
    if (turn.length === 0) return;
    const share = Math.floor(count / turn.length);
    const { group, consumer } = this.member;
    await this.#replies.round(turn, async (partition) => {
      let entries: StreamEntry[] | undefined;
      try {
        const how = ['COUNT', share, 'STREAMS', partition.events, '>'] as const;
        entries = entriesIn(partition, await this.#background.xreadgroup('GROUP', group, consumer, ...how));
        return entries;
      } finally {
        // More may be left.
        if (entries === undefined || entries.length === share) this.#turns.hurry(partition);
      }
    });
  }
}

function entriesIn(partition: PartitionKeys, reply: unknown): StreamEntry[] {
  const [[, entries] = ['', []]] = (reply ?? []) as [string, StreamReply[]][];
  return entries.map((entry) => toStreamEntry(partition, entry));
}

// Milliseconds. With one partition also how late a gap can be reported when no event follows it.
const LONGEST_WAIT = 1000;

/** Tells a reader outside of the groups in which partitions there may be events that it has not read. */
@Injectable()
export class EventArrivals {
  readonly #partitions: readonly PartitionKeys[];
  readonly #waiting: Redis | undefined;
  readonly #turns: PartitionTurns;
  #isFree: (partition: PartitionKeys) => boolean = () => true;

  constructor(
    @Inject(REDIS_CONNECTIONS) { broadcast }: Pick<RedisConnections, 'broadcast'>,
    @Inject(Partitions) { all }: Pick<Partitions, 'all'>,
    @Inject(PartitionSignals) signals: HeardSignals,
  ) {
    this.#partitions = all;
    this.#waiting = all.length === 1 ? broadcast : undefined;
    this.#turns = eventTurns(all, signals, (partition) => this.#isFree(partition));
  }

  /** Waits for such partitions, for a while; perhaps none has one. `positionOf`: of the last event that was read. */
  async wait(
    positionOf: (partition: PartitionKeys) => string,
    isFree: (partition: PartitionKeys) => boolean,
  ): Promise<readonly PartitionKeys[]> {
    this.#isFree = isFree;
    const [only] = this.#partitions as [PartitionKeys];
    // Until its last read has had a reply, nobody knows what to wait for.
    if (this.#waiting && isFree(only)) {
      await this.#waiting.xread('COUNT', 1, 'BLOCK', LONGEST_WAIT, 'STREAMS', only.events, positionOf(only));
      return [only];
    }
    await this.#turns.wait(LONGEST_WAIT);
    return this.#turns.take();
  }

  /** Ends a wait for a signal or a reply. Redis soon ends one for an event. */
  wake(): void {
    this.#turns.wake();
  }

  close(): void {
    this.wake();
    if (this.#waiting) void closeConnection(this.#waiting);
  }
}

export function eventTurns(
  partitions: readonly PartitionKeys[],
  signals: HeardSignals,
  isFree: (partition: PartitionKeys) => boolean,
): PartitionTurns {
  const turns = new PartitionTurns(partitions, signals, isFree);
  signals.onSignal((partition, signal) => {
    if (signal === 'events' || signal === 'missed') turns.hurry(partition);
  });
  return turns;
}
