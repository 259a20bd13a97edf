import type { Redis } from 'ioredis';
import { closeConnection } from '../connection/close-connection.js';
import type { PartitionKeys } from '../partitions/partition-keys.js';
import type { ConsumerIdentity } from '../scripts/delivery/delivery.scripts.js';
import { type StreamEntry, type StreamReply, toStreamEntry } from '../scripts/stream/stream-entry.js';
import { DuePartitions, type HeardSignals } from './due-partitions.js';
import { PartitionReplies } from './partition-replies.js';
import { byPosition } from './stream-position.js';

/** Reads new entries for a group. */
export abstract class UnreadEventReader {
  /** Whether no partition that could not be read is left, after a read that has succeeded. */
  abstract readonly isSettled: boolean;

  /** Up to `count` entries in recorded order. Waits up to `patience` milliseconds while no partition has one. */
  abstract read(count: number, patience: number): Promise<StreamEntry[]>;

  /** Ends all reading. Resolves when Redis executes no read of this instance any more. */
  abstract close(): Promise<void>;
}

/** Reads the stream of the only partition, and lets Redis wait for entries. */
export class BlockingEventReader extends UnreadEventReader {
  readonly isSettled = true;

  /** `client`: blocks while it waits for entries, so nothing else uses it. */
  constructor(
    private readonly client: Redis,
    private readonly partition: PartitionKeys,
    private readonly member: ConsumerIdentity,
  ) {
    super();
  }

  /** `patience`: never 0, with which Redis would wait for ever. */
  read(count: number, patience: number): Promise<StreamEntry[]> {
    return readUnread(this.client, this.partition, this.member, ['COUNT', count, 'BLOCK', patience]);
  }

  close(): Promise<void> {
    return closeConnection(this.client);
  }
}

/**
 * Reads the streams of several partitions when signals tell of new entries: no command waits for those of two slots.
 * Redis limits the entries per stream, not in all: with fewer free places than partitions, the partitions take turns.
 */
export class SignalledEventReader extends UnreadEventReader {
  readonly #due: DuePartitions;
  readonly #replies: PartitionReplies<readonly StreamEntry[]>;
  /** Read, and not returned yet. */
  #entries: StreamEntry[] = [];
  #isClosed = false;

  constructor(
    private readonly client: Redis,
    partitions: readonly PartitionKeys[],
    private readonly member: ConsumerIdentity,
    signals: HeardSignals,
  ) {
    super();
    this.#replies = new PartitionReplies(() => this.#due.wake());
    this.#due = new DuePartitions(signals, partitions, this.#replies.isFree);
  }

  get isSettled(): boolean {
    return this.#replies.isSettled;
  }

  async read(count: number, patience: number): Promise<StreamEntry[]> {
    const end = performance.now() + patience;
    while (!this.#isClosed) {
      if (this.#entries.length === 0) await this.#ask(count);
      this.#entries.push(...this.#replies.take().flat());
      if (this.#entries.length > 0) return this.#entries.sort(byPosition).splice(0, count);
      const left = end - performance.now();
      if (left <= 0) break;
      await this.#due.wait(left);
    }
    return [];
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#due.wake();
    await this.#replies.untilFree();
  }

  async #ask(count: number): Promise<void> {
    const turn = this.#replies.hasNews ? [] : this.#due.take(count);
    if (turn.length === 0) return;
    const share = Math.floor(count / turn.length);
    await this.#replies.round(turn, async (partition) => {
      let entries: StreamEntry[] | undefined;
      try {
        entries = await readUnread(this.client, partition, this.member, ['COUNT', share]);
        return entries;
      } finally {
        // More may be left.
        if (entries === undefined || entries.length === share) this.#due.add(partition);
      }
    });
  }
}

async function readUnread(
  client: Redis,
  partition: PartitionKeys,
  { group, consumer }: ConsumerIdentity,
  how: readonly ['COUNT', number, 'BLOCK', number] | readonly ['COUNT', number],
): Promise<StreamEntry[]> {
  const args = [
    'GROUP',
    group,
    consumer,
    ...(how as readonly ['COUNT', number]),
    'STREAMS',
    partition.events,
    '>',
  ] as const;
  const reply = (await client.xreadgroup(...args)) as [string, StreamReply[]][] | null;
  return (reply?.[0]?.[1] ?? []).map((entry) => toStreamEntry(partition, entry));
}
