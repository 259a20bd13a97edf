import type { Claim, ClaimOutcome } from '../../cleanup/sweep.counter.js';

/** A session that the sorted set had. */
export interface DueSession extends Claim {
  readonly id: string;
  /** The time that the set had for it: epoch milliseconds by the clock of Redis, as Redis writes it. */
  readonly time: string;
}

/** What one call took out of the sorted set of a partition. */
export interface DueSessions {
  /** The clock of Redis: epoch milliseconds. */
  readonly now: number;
  readonly sessions: readonly DueSession[];
  /** Milliseconds until the earliest one that is left is due; undefined when there is none. */
  readonly next: number | undefined;
}

/** The reply of claim-due. */
export type DueReply = [now: number, next: number | '', ...sessions: (string | number)[]];

/** How claim-expired and claim-due reply about a session. A number: it is claimed now, so many ms after its end. */
export type ClaimReply = ClaimOutcome | number;

export function toClaim(reply: ClaimReply): Claim {
  return typeof reply === 'number' ? { outcome: 'claimed', delay: reply } : { outcome: reply };
}

export function toDueSessions([now, next, ...words]: DueReply): DueSessions {
  const sessions = Array.from({ length: words.length / 3 }, (_, n) => {
    const [id, time, outcome] = words.slice(3 * n, 3 * n + 3) as [string, string, ClaimReply];
    return { id, time, ...toClaim(outcome) };
  });
  return { now, sessions, next: next === '' ? undefined : next };
}
