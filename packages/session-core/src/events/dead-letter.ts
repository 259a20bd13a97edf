import { textOf } from '../logging/shown-error.js';

/** An event that a group could not handle, or a stray key or member that stood in the place of something else. */
export interface DeadLetter<Event> {
  /** Pass it to `replay()` or `discard()`. */
  readonly id: string;
  /** When it became a dead letter: epoch ms by Redis' clock. */
  readonly at: number;
  /** Why: the errors of the handlers, at most 1,000 characters, or what is foreign. */
  readonly reason: string;
  /** The group that could not handle the event; undefined for a stray key or member. */
  readonly group: string | undefined;
  /**
   * Name of the handler that failed, as `Class.method`; of several, the first. Undefined when instances ended over the
   * event, and for a stray key or member.
   */
  readonly handler: string | undefined;
  /** Number of attempts; 0 for a stray key or member. */
  readonly attempts: number;
  /** Names of the handlers that succeeded, as `Class.method`; a replay does not call them again. */
  readonly succeeded: readonly string[];
  /**
   * The event as it was in the last attempt, with the data that it had. Log lines name it by its `id`. Undefined for an
   * event of a newer version and for what is foreign. Without data when there was none, and when `omittedBytes` is set.
   */
  readonly event: Event | undefined;
  /**
   * The bytes of the data of the event when that was larger than 256 KiB, and is not in the dead
   * letter; undefined otherwise. A replay then has the data only as long as the store still has them.
   */
  readonly omittedBytes: number | undefined;
  /** The stray key, or the member of a bucket; undefined for an event. */
  readonly member: string | undefined;
}

/** Chooses dead letters. */
export interface DeadLetterFilter {
  /** The name of the group; unset: all groups. */
  readonly group?: string;
}

/**
 * The result of replaying a dead letter. `replayed`: its group handles it again; `gone`: it does not exist; `orphaned`:
 * its group does not exist; `foreign`: it is no event, so no handler can take it.
 */
export type ReplayReply = 'replayed' | 'gone' | 'orphaned' | 'foreign';

/**
 * Checks how many dead letters a list may have at most.
 * @throws RangeError for what is neither a whole number nor Infinity
 */
export function assertLimit(limit: number): void {
  if (limit === Infinity || (Number.isInteger(limit) && limit >= 0)) return;
  throw new RangeError('`limit` must be a whole number that is not negative');
}

/** How often an event is tried whose handlers fail, and after how many milliseconds again: in every store. */
export const RETRIES = { attempts: 10, firstBackOff: 1000, longestBackOff: 300_000 } as const;

/** Milliseconds until the next attempt: doubled with each one, as in retry-or-dead-letter.lua of redis-events. */
export function backOffAfter(attempt: number): number {
  return Math.min(RETRIES.firstBackOff * 2 ** (attempt - 1), RETRIES.longestBackOff);
}

const LONGEST_REASON = 1000;

/** The reason of a dead letter: the errors of the handlers that failed. */
export function reasonOf(failed: readonly { readonly name: string; readonly cause: unknown }[]): string {
  const reason = failed.map(({ name, cause }) => `${name}: ${textOf(cause)}`).join('; ');
  return reason.slice(0, LONGEST_REASON);
}
