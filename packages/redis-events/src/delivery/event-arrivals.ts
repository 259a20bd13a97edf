import type { Redis } from 'ioredis';
import { closeConnection } from '../connection/close-connection.js';
import type { PartitionKeys } from '../partitions/partitions.js';
import type { ConsumerIdentity } from '../scripts/event-stream.scripts.js';
import { byPosition, type StreamEntry, type StreamReply, toStreamEntry } from '../scripts/stream/stream-entry.js';
import { type HeardSignals, PartitionReplies, PartitionTurns } from './partition-turns.js';

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
  async read(count: number, patience: number): Promise<StreamEntry[]> {
    const { client, partition, member } = this;
    const how = ['COUNT', count, 'BLOCK', patience, 'STREAMS', partition.events, '>'] as const;
    return entriesIn(partition, await client.xreadgroup('GROUP', member.group, member.consumer, ...how));
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
  readonly #turns: PartitionTurns;
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
    this.#replies = new PartitionReplies(() => this.#turns.wake());
    this.#turns = eventTurns(partitions, signals, this.#replies.isFree);
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
      await this.#turns.wait(left);
    }
    return [];
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#turns.wake();
    await this.#replies.untilFree();
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
        entries = entriesIn(partition, await this.client.xreadgroup('GROUP', group, consumer, ...how));
        return entries;
      } finally {
        // More may be left.
        if (entries === undefined || entries.length === share) this.#turns.hurry(partition);
      }
    });
  }
}

/** What a read of the stream of a partition has replied. */
function entriesIn(partition: PartitionKeys, reply: unknown): StreamEntry[] {
  const [[, entries] = ['', []]] = (reply ?? []) as [string, StreamReply[]][];
  return entries.map((entry) => toStreamEntry(partition, entry));
}

// Milliseconds. With one partition also how late a gap can be reported when no event follows it.
const LONGEST_WAIT = 1000;

/** Tells a reader outside of the groups in which partitions there may be events that it has not read. */
export abstract class EventArrivals {
  /**
   * Waits for such partitions, for a while. Perhaps none has one. `positions`: of the last event that was read.
   * `isFree`: whether a partition can be read now.
   */
  abstract wait(
    positions: ReadonlyMap<PartitionKeys, string>,
    isFree: (partition: PartitionKeys) => boolean,
  ): Promise<readonly PartitionKeys[]>;

  /** Ends a wait. */
  abstract wake(): void;

  /** Ends all waiting for good. */
  close(): void {
    this.wake();
  }
}

/** Lets Redis wait for an event of the only partition. */
export class BlockingArrivals extends EventArrivals {
  #wake = (): void => undefined;

  /** `client`: blocks while it waits, so nothing else uses it. */
  constructor(
    private readonly client: Redis,
    private readonly partition: PartitionKeys,
  ) {
    super();
  }

  async wait(
    positions: ReadonlyMap<PartitionKeys, string>,
    isFree: (partition: PartitionKeys) => boolean,
  ): Promise<readonly PartitionKeys[]> {
    if (isFree(this.partition)) {
      const position = positions.get(this.partition)!;
      await this.client.xread('COUNT', 1, 'BLOCK', LONGEST_WAIT, 'STREAMS', this.partition.events, position);
    } else {
      // Its last read has had no reply yet, so nobody knows what to wait for.
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    return [this.partition];
  }

  /** Ends a wait for the reply of a read. Redis soon ends one for an event. */
  wake(): void {
    this.#wake();
  }

  override close(): void {
    super.close();
    void closeConnection(this.client);
  }
}

/** Goes by the signals of several partitions: no command waits for the events of two slots. */
export class SignalledArrivals extends EventArrivals {
  #isFree: (partition: PartitionKeys) => boolean = () => true;
  readonly #turns: PartitionTurns;

  constructor(signals: HeardSignals, partitions: readonly PartitionKeys[]) {
    super();
    this.#turns = eventTurns(partitions, signals, (partition) => this.#isFree(partition));
  }

  async wait(
    _: ReadonlyMap<PartitionKeys, string>,
    isFree: (partition: PartitionKeys) => boolean,
  ): Promise<readonly PartitionKeys[]> {
    this.#isFree = isFree;
    await this.#turns.wait(LONGEST_WAIT);
    return this.#turns.take();
  }

  wake(): void {
    this.#turns.wake();
  }
}

/** The turns of partitions that have events when a signal says so, and perhaps without one. */
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
