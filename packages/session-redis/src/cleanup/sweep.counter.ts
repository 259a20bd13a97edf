import { shownError } from '@nest-session/core/internal';
import type { PartitionKeys } from '../partitions/partition-keys.js';
import { logger } from '../logging/redis-session.logger.js';
import { adviceFor } from '../logging/advice.js';

/** The outcome for something that was noted as due. */
export type ClaimOutcome = 'claimed' | 'alive' | 'already' | 'corrupt';

/**
 * Counts of one pass of a sweeper by outcome. `claimed`: its event was recorded; `alive`: it is not due any more;
 * `already`: claimed by another call; `corrupt`: stray keys or members that are now dead letters.
 */
export interface SweepResult extends Readonly<Record<ClaimOutcome, number>> {
  /** Number of buckets that were read. */
  readonly buckets: number;
  /** How many of the claimed were due over two minutes ago: an earlier pass should have found them. */
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
  /** Only for a pass that looks ahead: it can find the same again, where its member has moved to. */
  readonly #alive: Set<string> | undefined;

  constructor(looksAhead: boolean) {
    this.#alive = looksAhead ? new Set() : undefined;
  }

  /**
   * `due`: when it was to be looked at, and `now`: epoch milliseconds by the clock of its node. `member`: undefined
   * for a bucket itself.
   */
  count(
    { deadLetters }: PartitionKeys,
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
      const { length, 0: first } = this.failures;
      const batches = length === 1 ? '1 batch' : `${length} batches`;
      logger.error(
        `${batches} of the sweep failed, for the next one to repeat: ${shownError(first)}${adviceFor(first)}`,
      );
    }
  }
}

/** Logs how many were due long ago. `what`: as in 'sessions'. */
export function reportLate(what: string, count: number): void {
  if (count > 0) logger.log(`Caught up with ${count} ${what} that were due long ago`);
}
