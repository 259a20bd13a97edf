import { shownError } from '@nest-session/core/internal';
import type { PartitionKeys } from '../partitions/partitions.js';
import { logger } from '../logging/failure.log.js';
import { adviceFor } from '../logging/advice.js';

export interface SweepOptions {
  /** Also look at what is due in so many milliseconds. What is not due yet stays as it is. @default 0 */
  readonly ahead?: number;
  /** Ends the pass before its next batch. The next pass finds the rest. */
  readonly signal?: AbortSignal;
}

export abstract class DueSweeper<Keys extends PartitionKeys = PartitionKeys> {
  /** What it finds, as log lines say it: 'sessions'. */
  abstract readonly what: string;

  /** Whether our own lists do not have all that is due, so that it looks at every tick. @default false */
  readonly looksElsewhere?: boolean;

  /** One pass over some partitions, which are all on one node. A batch that fails is counted. */
  abstract sweep(partitions: readonly Keys[], tally: SweepCounter, options: SweepOptions): Promise<void>;
}

export interface DueList<Keys extends PartitionKeys = PartitionKeys> {
  /** Resolves to the milliseconds until the next one is due; undefined when there is none, or it was aborted. */
  claimIn(partition: Keys, tally: SweepCounter, options: SweepOptions): Promise<number | undefined>;
}

export type ClaimOutcome = 'claimed' | 'alive' | 'already' | 'corrupt';

export interface Claim {
  readonly outcome: ClaimOutcome;
  /** How many milliseconds after its time it was claimed, where that is known. */
  readonly delay?: number;
}

export interface Found {
  readonly claimed: number;
  readonly late: number;
  readonly delays: readonly number[];
}

/** `claimed`: event recorded; `alive`: not due any more; `already`: by another call; `corrupt`: dead letters now. */
export interface SweepResult extends Readonly<Record<ClaimOutcome, number>> {
  readonly buckets: number;
  readonly late: number;
}

// Milliseconds. By default the passes are a minute apart, so what was due two minutes ago was missed.
const LATE = 2 * 60_000;

export class SweepCounter {
  readonly result = { buckets: 0, claimed: 0, alive: 0, already: 0, corrupt: 0, late: 0 };
  readonly failures: unknown[] = [];
  readonly deadLetters = new Set<string>();
  #found: { claimed: number; late: number; readonly delays: number[] } | undefined;
  /** Only for a pass that looks ahead: it can find the same again, where its member has moved to. */
  readonly #alive: Set<string> | undefined;

  constructor(looksAhead: boolean) {
    this.#alive = looksAhead ? new Set() : undefined;
  }

  /** `due` and `now`: epoch ms by the clock of its node. `member`: undefined for a bucket itself. */
  count(
    { deadLetters }: PartitionKeys,
    member: string | undefined,
    { outcome, delay }: Claim,
    due: number,
    now: number,
  ): void {
    if (outcome === 'alive' && member !== undefined) {
      if (this.#alive?.has(member)) return;
      this.#alive?.add(member);
    }
    this.result[outcome]++;
    if (outcome === 'corrupt') this.deadLetters.add(deadLetters);
    if (outcome !== 'claimed') return;
    const late = due < now - LATE ? 1 : 0;
    this.result.late += late;
    if (!this.#found) return;
    this.#found.claimed++;
    this.#found.late += late;
    if (delay !== undefined) this.#found.delays.push(delay);
  }

  takeFound(): Found {
    const found = this.#found ?? { claimed: 0, late: 0, delays: [] };
    this.#found = { claimed: 0, late: 0, delays: [] };
    return found;
  }

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

export function reportLate(what: string, count: number): void {
  if (count > 0) logger.log(`Caught up with ${count} ${what} that were due long ago`);
}

export interface DueEntry extends Claim {
  readonly id: string;
  /** Epoch milliseconds by the clock of Redis, as Redis writes it. */
  readonly time: string;
}

export interface DueEntries {
  readonly now: number;
  readonly entries: readonly DueEntry[];
  /** Milliseconds until the earliest one that is left is due; undefined when there is none. */
  readonly next: number | undefined;
}

/** How a script replies that takes what is due: for each of it the id, the time and the outcome. */
export type DueReply = [now: number, next: number | '', ...entries: (string | number)[]];

/** How scripts reply about a claim. A number: it is claimed now, so many ms after its time. */
export type ClaimReply = ClaimOutcome | number;

export function toClaim(reply: ClaimReply): Claim {
  return typeof reply === 'number' ? { outcome: 'claimed', delay: reply } : { outcome: reply };
}

export function toDueEntries([now, next, ...words]: DueReply): DueEntries {
  const entries = Array.from({ length: words.length / 3 }, (_, n) => {
    const [id, time, outcome] = words.slice(3 * n, 3 * n + 3) as [string, string, ClaimReply];
    return { id, time, ...toClaim(outcome) };
  });
  return { now, entries, next: next === '' ? undefined : next };
}
