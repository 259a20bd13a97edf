import type { PartitionSignals } from '../connection/partition-signals.js';
import type { PartitionKeys } from '../partitions/partitions.js';
import { settledWithin } from '../timing/background-service.js';

export type HeardSignals = Pick<PartitionSignals, 'onSignal' | 'heardSince'>;

// Milliseconds between two reads of a partition whose signals are heard, and of one whose signals are not.
const SLOW_POLL = 60_000;
const POLL = 500;

/**
 * Which partitions are asked next, in the order in which they were asked last: those that were not for a while, and
 * those of which somebody has told since.
 */
export class PartitionTurns {
  /** When each was asked: monotonic time, in that order. */
  readonly #askedAt: Map<PartitionKeys, number>;
  readonly #hurried = new Set<PartitionKeys>();
  #wake = (): void => undefined;

  /**
   * `isFree`: whether a partition can be asked now. When it can again, wake() is called. `interval`: milliseconds after
   * which each is due again, spread over them at first; by default 60 s while its signals are heard, else 500 ms.
   */
  constructor(
    private readonly partitions: readonly PartitionKeys[],
    private readonly signals: Pick<HeardSignals, 'heardSince'>,
    private readonly isFree: (partition: PartitionKeys) => boolean,
    private readonly interval?: number,
  ) {
    this.#askedAt = new Map(partitions.map((partition) => [partition, -Infinity]));
  }

  hurry(partition: PartitionKeys): void {
    this.#hurried.add(partition);
    this.wake();
  }

  /** Up to `limit` of those that are due. They are asked now. */
  take(limit = Infinity): PartitionKeys[] {
    const now = performance.now();
    const due = [...this.#askedAt.keys()].filter((each) => this.isFree(each) && this.#dueAt(each) <= now);
    const turn = due.slice(0, limit);
    for (const partition of turn) {
      this.#hurried.delete(partition);
      const isFirst = this.#askedAt.get(partition) === -Infinity;
      // Behind the others.
      this.#askedAt.delete(partition);
      this.#askedAt.set(partition, isFirst ? now - this.#headStartOf(partition) : now);
    }
    return turn;
  }

  /** Waits until a partition is due or wake() is called, at most so many milliseconds. */
  async wait(ms: number): Promise<void> {
    const now = performance.now();
    const next = Math.min(...this.partitions.filter(this.isFree).map((each) => this.#dueAt(each)));
    if (next <= now) return;
    await new Promise<void>((resolve) => {
      // Signals may not be heard any more by then.
      const timer = setTimeout(resolve, Math.max(0, Math.min(ms, POLL, next - now))).unref();
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  wake(): void {
    this.#wake();
  }

  #dueAt(partition: PartitionKeys): number {
    if (this.#hurried.has(partition)) return -Infinity;
    const poll = this.signals.heardSince(partition) === Infinity ? POLL : SLOW_POLL;
    return this.#askedAt.get(partition)! + (this.interval ?? poll);
  }

  #headStartOf(partition: PartitionKeys): number {
    const { length } = this.partitions;
    return ((length - 1 - this.partitions.indexOf(partition)) / length) * (this.interval ?? 0);
  }
}

// Milliseconds that a round waits, also while another partition is late: its node may have more of those that are
// asked.
const PATIENCE = 1000;
const PATIENCE_IN_OUTAGE = 50;

/**
 * Asks several partitions at once. Those whose node does not reply hold up nobody: they are not asked again until they
 * have replied, and their replies are taken in a later round.
 */
export class PartitionReplies<Reply> {
  readonly #asked = new Map<PartitionKeys, Promise<void>>();
  readonly #failing = new Set<PartitionKeys>();
  #replies: Reply[] = [];
  /** The first one that was not thrown yet. */
  #failure: { readonly error: unknown } | undefined;

  /** `onLate`: is called when replies have come after their round. */
  constructor(private readonly onLate: () => void = () => undefined) {}

  isFree = (partition: PartitionKeys): boolean => !this.#asked.has(partition);

  get hasNews(): boolean {
    return this.#replies.length > 0 || this.#failure !== undefined;
  }

  /** Whether all replies have come and been taken, and no partition has failed since it last succeeded. */
  get isSettled(): boolean {
    return this.#asked.size === 0 && this.#failing.size === 0 && !this.hasNews;
  }

  /** There is nothing left to ask of a partition that has failed. */
  forgive(partition: PartitionKeys): void {
    this.#failing.delete(partition);
  }

  /** Asks those that are free. Resolves when they have replied, or have had enough time to. Never rejects. */
  async round(partitions: readonly PartitionKeys[], ask: (partition: PartitionKeys) => Promise<Reply>): Promise<void> {
    let isOver = false;
    const patience = this.#asked.size > 0 ? PATIENCE_IN_OUTAGE : PATIENCE;
    const asking = partitions.filter(this.isFree).map((partition) => {
      const reply = ask(partition)
        .then(
          (value) => {
            this.#failing.delete(partition);
            this.#replies.push(value);
          },
          (error: unknown) => {
            this.#failing.add(partition);
            this.#failure ??= { error };
          },
        )
        .finally(() => {
          this.#asked.delete(partition);
          if (isOver) this.onLate();
        });
      this.#asked.set(partition, reply);
      return reply;
    });
    await settledWithin(patience, Promise.all(asking));
    isOver = true;
  }

  /** @throws the first error instead, while the replies wait for the next call */
  take(): Reply[] {
    this.throwFailure();
    return this.takeReplies();
  }

  takeReplies(): Reply[] {
    return this.#replies.splice(0);
  }

  /** @throws the first error that has come since the last call */
  throwFailure(): void {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure) throw failure.error;
  }

  async untilFree(): Promise<void> {
    await Promise.all(this.#asked.values());
  }
}
