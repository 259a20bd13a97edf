import type { PartitionKeys } from '../partitions/partition-keys.js';
import { settledWithin } from '../timing/settled-within.js';

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

  /** Asks partitions that are free. Resolves when they have replied, or have had enough time to. Never rejects. */
  async round(partitions: readonly PartitionKeys[], ask: (partition: PartitionKeys) => Promise<Reply>): Promise<void> {
    let isOver = false;
    const patience = this.#asked.size > 0 ? PATIENCE_IN_OUTAGE : PATIENCE;
    const asking = partitions.map((partition) => {
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
