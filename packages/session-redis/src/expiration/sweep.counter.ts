import type { SessionKeys } from '../keys/session-keys.js';
import type { ClaimOutcome } from '../scripts/session/session.scripts.js';

/** Who may be due in a minute, in one partition. */
export interface Bucket {
  readonly partition: SessionKeys;
  readonly minute: string;
}

/** What a pass has done: how many buckets it looked at, and how many of their sessions it found in which state. */
export interface SweepResult extends Readonly<Record<ClaimOutcome, number>> {
  /** How many buckets the pass looked at. */
  readonly buckets: number;
  /** Of those claimed, how many an earlier pass should have found: nobody was there, or Redis was not. */
  readonly late: number;
}

// The passes are a minute apart unless configured otherwise, and each finds what has become due since the one before.
const LATE = 2 * 60_000;

/** Adds up what a pass does. */
export class SweepCounter {
  readonly result = { buckets: 0, claimed: 0, alive: 0, already: 0, corrupt: 0, late: 0 };
  /** Why batches could not be claimed. */
  readonly failures: unknown[] = [];
  /** The streams into which something was put. */
  readonly deadLetters = new Set<string>();
  readonly #lateBefore: number;
  /** Of a pass that looks ahead, which finds a member again in a set that shrinks, or where it was moved to. */
  readonly #alive: Set<string> | undefined;

  /** Epoch milliseconds by Redis' clock: when the pass began, and the latest minute it looks at. */
  constructor(now: number, until: number) {
    this.#lateBefore = now - LATE;
    this.#alive = until > now ? new Set() : undefined;
  }

  count({ partition, minute }: Bucket, members: readonly string[], outcomes: readonly ClaimOutcome[]): void {
    for (const [i, outcome] of outcomes.entries()) {
      const member = members[i];
      if (outcome === 'alive' && member !== undefined) {
        if (this.#alive?.has(member)) continue;
        this.#alive?.add(member);
      }
      this.result[outcome]++;
      if (outcome === 'corrupt') this.deadLetters.add(partition.deadLetters);
      if (outcome === 'claimed' && Number(minute) < this.#lateBefore) this.result.late++;
    }
  }
}
