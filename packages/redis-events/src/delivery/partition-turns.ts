import type { PartitionSignals } from '../connection/partition-signals.js';
import type { PartitionKeys } from '../partitions/partitions.js';
import { settledWithin } from '../timing/background-service.js';

/** What a reader needs to know of signals. */
export type HeardSignals = Pick<PartitionSignals, 'onSignal' | 'heardSince'>;

// Milliseconds between two reads of a partition whose signals are heard, and of one whose signals are not.
const SLOW_POLL = 60_000;
const POLL = 500;

interface TurnRules {
  /** Milliseconds after which a partition is due again. @default 60 s while its signals are heard, else 500 ms */
  readonly interval?: number;
  /** Spreads the first ones over the interval, so that later not all are due at once. @default false */
  readonly spread?: boolean;
}

/**
 * Which partitions are asked next: those that were not asked for a while, and those of which somebody has told since
 * they were asked. The one that was asked longest ago is the first.
 */
export class PartitionTurns {
  /** When each was asked: monotonic time, in that order. */
  readonly #askedAt: Map<PartitionKeys, number>;
  readonly #hurried = new Set<PartitionKeys>();
  #wake: (() => void) | undefined;

  constructor(
    private readonly partitions: readonly PartitionKeys[],
    private readonly signals: HeardSignals,
    /** Whether a partition can be asked now. When it can again, wake() is called. */
    private readonly isFree: (partition: PartitionKeys) => boolean,
    private readonly rules: TurnRules = {},
  ) {
    this.#askedAt = new Map(partitions.map((partition) => [partition, -Infinity]));
  }

  /** There may be something new in a partition. */
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
      const askedAt = now - this.#headStartOf(partition);
      // Behind the others.
      this.#askedAt.delete(partition);
      this.#askedAt.set(partition, askedAt);
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
    this.#wake = undefined;
  }

  wake(): void {
    this.#wake?.();
  }

  #dueAt(partition: PartitionKeys): number {
    return this.#hurried.has(partition) ? -Infinity : this.#askedAt.get(partition)! + this.#intervalOf(partition);
  }

  #intervalOf(partition: PartitionKeys): number {
    return this.rules.interval ?? (this.signals.heardSince(partition) === Infinity ? POLL : SLOW_POLL);
  }

  #headStartOf(partition: PartitionKeys): number {
    if (!this.rules.spread || this.#askedAt.get(partition) !== -Infinity) return 0;
    const { length } = this.partitions;
    return ((length - 1 - this.partitions.indexOf(partition)) / length) * this.#intervalOf(partition);
  }
}

// Milliseconds that a round waits for a node, also while another partition has not replied: its node is probably down,
// and may have more of the partitions that are asked.
const PATIENCE = 1000;
const PATIENCE_IN_OUTAGE = 50;

/**
 * Asks several partitions at once. A node that does not reply holds up nobody: its partitions are not asked again until
 * they have replied, and their replies are taken in a later round.
 */
export class PartitionReplies<Reply> {
  readonly #asked = new Map<PartitionKeys, Promise<void>>();
  /** The partitions whose last reply was an error. */
  readonly #failing = new Set<PartitionKeys>();
  #replies: Reply[] = [];
  /** The first one that was not thrown yet. */
  #failure: { readonly error: unknown } | undefined;

  /** `onLate`: is called when replies have come after their round. */
  constructor(private readonly onLate: () => void = () => undefined) {}

  /** Whether a partition has replied to all that it was asked. */
  isFree = (partition: PartitionKeys): boolean => !this.#asked.has(partition);

  /** Whether take() has something to return, or to throw. */
  get hasNews(): boolean {
    return this.#replies.length > 0 || this.#failure !== undefined;
  }

  /** Whether all that was asked has been answered, and taken, and no partition has failed since it last succeeded. */
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

  /** The replies that have come. @throws the first error instead, while the replies wait for the next call */
  take(): Reply[] {
    this.throwFailure();
    return this.takeReplies();
  }

  /** The replies that have come, whatever has failed. */
  takeReplies(): Reply[] {
    return this.#replies.splice(0);
  }

  /** @throws the first error that has come since the last call */
  throwFailure(): void {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure) throw failure.error;
  }

  /** Resolves when nothing is asked any more. */
  async untilFree(): Promise<void> {
    await Promise.all(this.#asked.values());
  }
}
