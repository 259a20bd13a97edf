import type { PartitionSignals } from '../connection/partition-signals.js';
import type { PartitionKeys } from '../partitions/partition-keys.js';
import { PartitionRoundRobin } from './partition-round-robin.js';

/** What a reader needs to know of signals. */
export type HeardSignals = Pick<PartitionSignals, 'onSignal' | 'heardSince'>;

// Milliseconds between two looks at a partition whose signals are heard, and at one whose signals are not.
const SLOW_POLL = 60_000;
const POLL = 500;

/** The partitions that may have events which a reader has not seen: after a signal, and from time to time. */
export class DuePartitions {
  readonly #turns: PartitionRoundRobin;
  readonly #due: Set<PartitionKeys>;
  #nextPoll = performance.now() + POLL;
  #nextSlowPoll = performance.now() + SLOW_POLL;
  #wake: (() => void) | undefined;

  constructor(
    private readonly signals: HeardSignals,
    private readonly partitions: readonly PartitionKeys[],
    /** Whether a partition can be asked now. When it can again, wake() is called. */
    private readonly isFree: (partition: PartitionKeys) => boolean,
  ) {
    this.#turns = new PartitionRoundRobin(partitions);
    this.#due = new Set(partitions);
    signals.onSignal((partition, signal) => {
      if (signal === 'events' || signal === 'missed') this.add(partition);
    });
  }

  add(partition: PartitionKeys): void {
    this.#due.add(partition);
    this.wake();
  }

  /** Up to `limit` of them, which are no longer due: those that have waited longest. */
  take(limit = Infinity): PartitionKeys[] {
    this.#poll();
    const some = this.#freeOnes();
    const turn = some.size > 0 ? this.#turns.next(limit, some) : [];
    for (const partition of turn) this.#due.delete(partition);
    return turn;
  }

  /** Waits until a partition is due or wake() is called, at most so many milliseconds. */
  async wait(ms: number): Promise<void> {
    if (this.#freeOnes().size > 0) return;
    const untilPoll = Math.min(this.#nextPoll, this.#nextSlowPoll) - performance.now();
    const wait = Math.max(0, Math.min(ms, untilPoll));
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, wait).unref();
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }

  wake(): void {
    this.#wake?.();
  }

  #freeOnes(): ReadonlySet<PartitionKeys> {
    return new Set([...this.#due].filter(this.isFree));
  }

  #poll(): void {
    const now = performance.now();
    if (now >= this.#nextSlowPoll) {
      this.#nextSlowPoll = now + SLOW_POLL;
      for (const partition of this.partitions) this.#due.add(partition);
    }
    if (now < this.#nextPoll) return;
    this.#nextPoll = now + POLL;
    for (const partition of this.partitions) if (this.signals.heardSince(partition) > now) this.#due.add(partition);
  }
}
