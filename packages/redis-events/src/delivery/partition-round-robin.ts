import type { PartitionKeys } from '../partitions/partition-keys.js';

/** Lets partitions take turns when there are fewer places than partitions. */
export class PartitionRoundRobin {
  #next = 0;

  constructor(private readonly partitions: readonly PartitionKeys[]) {}

  /** Up to `limit` of some partitions, by default of all: those that have waited longest. */
  next(limit: number, some: ReadonlySet<PartitionKeys> = new Set(this.partitions)): PartitionKeys[] {
    const waiting = [...this.partitions.slice(this.#next), ...this.partitions.slice(0, this.#next)];
    const turn = waiting.filter((partition) => some.has(partition)).slice(0, limit);
    this.#next = this.partitions.indexOf(turn.at(-1)!) + 1;
    return turn;
  }
}
