import type { Redis } from 'ioredis';
import type { SessionKeys } from '../keys/session-keys.js';
import type { ConsumerIdentity } from '../scripts/delivery/delivery.scripts.js';
import type { StreamReply } from '../scripts/stream/event-stream.scripts.js';
import { DuePartitions, type HeardSignals } from './due-partitions.js';
import { PartitionReplies } from './partition-replies.js';
import { type StreamEntry, toStreamEntry } from './stream-entry.js';
import { byPosition } from './stream-position.js';
import { UnreadEventReader } from './unread-event.reader.js';

/**
 * Reads the streams of several partitions when signals tell of new entries: no command waits for those of two slots. Redis
 * limits the entries per stream, not in all: with fewer free places than partitions, the partitions take turns.
 */
export class SignalledEventReader extends UnreadEventReader {
  readonly #due: DuePartitions;
  readonly #replies: PartitionReplies<readonly StreamEntry[]>;
  /** Read, and not returned yet. */
  #entries: StreamEntry[] = [];
  #isClosed = false;

  constructor(
    private readonly client: Redis,
    partitions: readonly SessionKeys[],
    private readonly member: ConsumerIdentity,
    signals: HeardSignals,
  ) {
    super();
    this.#replies = new PartitionReplies(() => this.#due.wake());
    this.#due = new DuePartitions(signals, partitions, this.#replies.isFree);
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
        entries = await this.#entriesIn(partition, share);
        return entries;
      } finally {
        // More may be left.
        if (entries === undefined || entries.length === share) this.#due.add(partition);
      }
    });
  }

  async #entriesIn(partition: SessionKeys, count: number): Promise<StreamEntry[]> {
    const { group, consumer } = this.member;
    const args = ['GROUP', group, consumer, 'COUNT', count, 'STREAMS', partition.events, '>'] as const;
    const reply = (await this.client.xreadgroup(...args)) as [string, StreamReply[]][] | null;
    return (reply?.[0]?.[1] ?? []).map((entry) => toStreamEntry(partition, entry));
  }
}
