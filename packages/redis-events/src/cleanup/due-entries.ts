import type { Claim, ClaimOutcome } from './sweep.counter.js';

/** What a sorted set has had as due. */
export interface DueEntry extends Claim {
  readonly id: string;
  /** The time that the set had for it: epoch milliseconds by the clock of Redis, as Redis writes it. */
  readonly time: string;
}

/** What one call took out of the sorted set of a partition. */
export interface DueEntries {
  /** The clock of Redis: epoch milliseconds. */
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
