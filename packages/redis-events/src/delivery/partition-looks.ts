import type { PartitionKeys } from '../partitions/partition-keys.js';

/**
 * When an instance looks for events of its group that another one has left: in each partition from time to time, not in
 * all of them at once, and at each chance where some were pending at the last look.
 */
export class PartitionLooks {
  /** Monotonic times. */
  readonly #nextAt: Map<PartitionKeys, number>;
  readonly #isFirst: Set<PartitionKeys>;
  /** Those where events may have become pending since the last look began. */
  readonly #hurried = new Set<PartitionKeys>();

  /** `interval`: milliseconds between two looks where nothing was pending. */
  constructor(
    private readonly partitions: readonly PartitionKeys[],
    private readonly interval: number,
  ) {
    this.#nextAt = new Map(partitions.map((partition) => [partition, 0]));
    this.#isFirst = new Set(partitions);
  }

  /** The partitions whose turn it is. */
  due(): PartitionKeys[] {
    const now = performance.now();
    return this.partitions.filter((partition) => this.#nextAt.get(partition)! <= now);
  }

  /** A look begins. It may miss what hurry() tells of until it has ended. */
  begin(partition: PartitionKeys): void {
    this.#hurried.delete(partition);
  }

  /** A look has ended. `isPending`: whether events of the group were pending there. */
  looked(partition: PartitionKeys, isPending: boolean): void {
    if (isPending || this.#hurried.has(partition)) return this.hurry(partition);
    const share = (this.partitions.indexOf(partition) + 1) / this.partitions.length;
    const wait = this.#isFirst.delete(partition) ? share * this.interval : this.interval;
    this.#nextAt.set(partition, performance.now() + wait);
  }

  /** Events may be pending there. */
  hurry(partition: PartitionKeys): void {
    this.#hurried.add(partition);
    this.#nextAt.set(partition, 0);
  }
}
