import { RETRIES } from '@nest-session/core/internal';
import type { PendingEvent } from './pending-event.js';

/** When failed events are retried; milliseconds. */
export interface DeliveryPace {
  /** How often an instance polls for due retries at most; on the average a quarter later. */
  readonly pollInterval: number;
  /** The back-off before the second attempt. scripts/delivery/retry-or-dead-letter.lua doubles it with each attempt. */
  readonly firstBackOff: number;
  readonly longestBackOff: number;
  /** How often an instance tells again what its broadcast handlers want and, beside others, what its group does. */
  readonly wishRenewal: number;
}

/** The pace of applications; tests override it. */
export const PACE: DeliveryPace = {
  pollInterval: 1000,
  firstBackOff: RETRIES.firstBackOff,
  longestBackOff: RETRIES.longestBackOff,
  wishRenewal: 60_000,
};

/** After how much an event is not retried any more, and becomes a dead letter. */
export interface RetryLimits {
  /** The number of failures, the option `events.attempts`. */
  readonly attempts: number;
  /** The number of instances that ended while they handled it: it would end the next too. */
  readonly mostAbandoned: number;
}

/** The default of `attempts`. */
export const ATTEMPTS = RETRIES.attempts;

/** The limit `mostAbandoned` of applications. */
export const MOST_ABANDONED = 5;

/** A failed attempt at an event. */
export interface Failure {
  /** The names of the handlers that have succeeded, in all attempts. */
  readonly done: readonly string[];
  readonly reason: string;
  /** The name of the first handler that failed; undefined when instances ended while they handled the event. */
  readonly handler?: string | undefined;
  /** Whether the event becomes a dead letter at once. */
  readonly isFinal?: boolean;
}

/** The failure of an event that ended too many instances to try it again; undefined for any other. */
export function abandonmentOf(
  { abandoned, done }: PendingEvent,
  { mostAbandoned }: Pick<RetryLimits, 'mostAbandoned'>,
): Failure | undefined {
  if (abandoned < mostAbandoned) return undefined;
  return { done, reason: `${abandoned} instances ended while they handled it`, isFinal: true };
}

/** How many failures of an event make it a dead letter, this one included; 0: this one in any case. */
export function attemptsFor({ isFinal = false }: Failure, { attempts }: Pick<RetryLimits, 'attempts'>): number {
  return isFinal ? 0 : attempts;
}
