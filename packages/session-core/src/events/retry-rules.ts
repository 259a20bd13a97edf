import { textOf } from '../logging/shown-error.js';

/** How often an event is tried whose handlers fail, and after how many milliseconds again: in every store. */
export const RETRIES = { attempts: 10, firstBackOff: 1000, longestBackOff: 300_000 } as const;

/** Milliseconds until the next attempt: doubled with each one, as in retry-or-dead-letter.lua of redis-events. */
export function backOffAfter(attempt: number): number {
  return Math.min(RETRIES.firstBackOff * 2 ** (attempt - 1), RETRIES.longestBackOff);
}

const LONGEST_REASON = 1000;

export function reasonOf(failed: readonly { readonly name: string; readonly cause: unknown }[]): string {
  const reason = failed.map(({ name, cause }) => `${name}: ${textOf(cause)}`).join('; ');
  return reason.slice(0, LONGEST_REASON);
}
