import type { SessionKeys } from '../keys/session-keys.js';

/** Lets partitions take turns where not all can have one of the limited places at a time. */
export class PartitionRoundRobin {
  #next = 0;

  constructor(private readonly partitions: readonly SessionKeys[]) {}

  /** Up to so many of some partitions, of all unless they are given: those that have waited longest for their turn. */
  next(limit: number, some: ReadonlySet<SessionKeys> = new Set(this.partitions)): SessionKeys[] {
    const waiting = [...this.partitions.slice(this.#next), ...this.partitions.slice(0, this.#next)];
    const turn = waiting.filter((partition) => some.has(partition)).slice(0, limit);
    this.#next = this.partitions.indexOf(turn.at(-1)!) + 1;
    return turn;
  }
}
