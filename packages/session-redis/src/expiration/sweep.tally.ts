import type { ClaimWord } from '../scripts/session.scripts.js';

/** What a pass has done: how many minutes it looked at, and how many of their sessions it found in which state. */
export interface SweepResult extends Readonly<Record<ClaimWord, number>> {
  readonly minutes: number;
  /** Of those claimed, how many an earlier pass should have found: nobody was there, or Redis was not. */
  readonly late: number;
}

// The passes are a minute apart unless configured otherwise, and each finds what has become due since the one before.
const LATE = 2 * 60_000;

/** Adds up what a pass does. */
export class SweepTally {
  readonly result = { minutes: 0, claimed: 0, alive: 0, already: 0, corrupt: 0, late: 0 };
  /** Why batches could not be claimed. */
  readonly failures: unknown[] = [];
  readonly #lateBefore: number;

  /** `now`: epoch milliseconds by Redis' clock. */
  constructor(now: number) {
    this.#lateBefore = now - LATE;
  }

  count(minute: string, words: readonly ClaimWord[]): void {
    for (const word of words) {
      this.result[word]++;
      if (word === 'claimed' && Number(minute) < this.#lateBefore) this.result.late++;
    }
  }
}
