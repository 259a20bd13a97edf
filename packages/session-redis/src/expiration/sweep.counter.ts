import type { SessionKeys } from '../keys/session-keys.js';
import type { ClaimOutcome } from '../scripts/session/session.scripts.js';

/** The bucket of one minute in one partition. */
export interface Bucket {
  readonly partition: SessionKeys;
  readonly minute: string;
  /** The clock of its node when the pass began there: epoch milliseconds. */
  readonly now: number;
}

/**
 * Counts of one pass of the sweeper, sessions by outcome. `claimed`: their end was recorded; `alive`: not ended;
 * `already`: claimed by another call; `corrupt`: foreign keys or members that are now dead letters.
 */
export interface SweepResult extends Readonly<Record<ClaimOutcome, number>> {
  /** Number of buckets that were read. */
  readonly buckets: number;
  /** Number of claimed sessions whose bucket was over two minutes old: an earlier pass should have found them. */
  readonly late: number;
}

// Milliseconds. By default the passes are a minute apart, so a bucket that is two minutes old was missed.
const LATE = 2 * 60_000;

/** Counts what a pass does. */
export class SweepCounter {
  readonly result = { buckets: 0, claimed: 0, alive: 0, already: 0, corrupt: 0, late: 0 };
  /** The errors of batches that could not be claimed. */
  readonly failures: unknown[] = [];
  /** The dead-letter streams that got entries. */
  readonly deadLetters = new Set<string>();
  /** Only for a pass that looks ahead: it can find a live session again, in the bucket that the session moved to. */
  readonly #alive: Set<string> | undefined;

  constructor(looksAhead: boolean) {
    this.#alive = looksAhead ? new Set() : undefined;
  }

  count({ partition, minute, now }: Bucket, members: readonly string[], outcomes: readonly ClaimOutcome[]): void {
    for (const [i, outcome] of outcomes.entries()) {
      const member = members[i];
      if (outcome === 'alive' && member !== undefined) {
        if (this.#alive?.has(member)) continue;
        this.#alive?.add(member);
      }
      this.result[outcome]++;
      if (outcome === 'corrupt') this.deadLetters.add(partition.deadLetters);
      if (outcome === 'claimed' && Number(minute) < now - LATE) this.result.late++;
    }
  }
}
