import type { SessionKeys } from '../keys/session.keys.js';

/** Lets partitions take turns where not all can have one of the limited places at a time. */
export class PartitionTurns {
  #next = 0;

  constructor(readonly partitions: readonly SessionKeys[]) {}

  /** The next partitions, up to so many: each of them once before any is named again. */
  next(limit: number): SessionKeys[] {
    const { length } = this.partitions;
    const turn = Array.from({ length: Math.min(limit, length) }, (_, i) => this.partitions[(this.#next + i) % length]!);
    this.#next = (this.#next + turn.length) % length;
    return turn;
  }
}
