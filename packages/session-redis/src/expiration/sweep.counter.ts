import { shownError } from '@nest-session/core/internal';
import type { SessionKeys } from '../keys/session-keys.js';
import { logger } from '../logging/redis-session.logger.js';
import type { ClaimOutcome } from '../scripts/session/due-session.js';

/**
 * Counts of one pass of the sweeper, sessions by outcome. `claimed`: their end was recorded; `alive`: not ended;
 * `already`: claimed by another call; `corrupt`: stray keys or members that are now dead letters.
 */
export interface SweepResult extends Readonly<Record<ClaimOutcome, number>> {
  /** Number of buckets that were read. */
  readonly buckets: number;
  /** Number of claimed sessions that were due over two minutes ago: an earlier pass should have found them. */
  readonly late: number;
}

// Milliseconds. By default the passes are a minute apart, so what was due two minutes ago was missed.
const LATE = 2 * 60_000;

/** Counts what a pass does. */
export class SweepCounter {
  readonly result = { buckets: 0, claimed: 0, alive: 0, already: 0, corrupt: 0, late: 0 };
  /** The errors of batches that could not be claimed. */
  readonly failures: unknown[] = [];
  /** The dead-letter streams that got entries. */
  readonly deadLetters = new Set<string>();
  /** Only for a pass that looks ahead: it can find a live session again, where its member has moved to. */
  readonly #alive: Set<string> | undefined;

  constructor(looksAhead: boolean) {
    this.#alive = looksAhead ? new Set() : undefined;
  }

  /**
   * `due`: when the session was to be looked at, and `now`: epoch milliseconds by the clock of its node. `member`: undefined
   * for a bucket itself.
   */
  count(
    { deadLetters }: SessionKeys,
    member: string | undefined,
    outcome: ClaimOutcome,
    due: number,
    now: number,
  ): void {
    if (outcome === 'alive' && member !== undefined) {
      if (this.#alive?.has(member)) return;
      this.#alive?.add(member);
    }
    this.result[outcome]++;
    if (outcome === 'corrupt') this.deadLetters.add(deadLetters);
    if (outcome === 'claimed' && due < now - LATE) this.result.late++;
  }

  /** Logs what somebody has to look at. `signal`: of the pass. */
  report(signal?: AbortSignal): void {
    const { corrupt } = this.result;
    if (corrupt > 0) {
      logger.error(
        `Moved ${corrupt} stray keys or members to the dead letters: see the stream ${[...this.deadLetters].join(', ')}`,
      );
    }
    // During a shutdown, failures are expected.
    if (this.failures.length > 0 && !signal?.aborted) {
      logger.error(
        `${this.failures.length} batches of the sweep failed; the next sweep repeats them: ${shownError(this.failures[0])}`,
      );
    }
  }
}
