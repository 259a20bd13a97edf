import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import type { SessionPartitions } from '../keys/session-partitions.js';

/** When failed events are retried; milliseconds. */
export interface DeliveryPace {
  /** How often an instance polls for due retries. */
  readonly pollInterval: number;
  /** The back-off before the second attempt. scripts/delivery/retry-or-dead-letter.lua doubles it with each attempt. */
  readonly firstBackOff: number;
  readonly longestBackOff: number;
  /** How often an instance tells again which events its broadcast handlers want. */
  readonly wishRenewal: number;
}

/** The pace of applications; tests override it. */
export const PACE: DeliveryPace = {
  pollInterval: 1000,
  firstBackOff: 1000,
  longestBackOff: 300_000,
  wishRenewal: 60_000,
};

/** An event whose handling has ended this many instances becomes a dead letter, whatever `events.attempts` says. */
const MOST_ABANDONED = 5;

/**
 * Bytes of the session's data in a dead letter. As much as `maxSessionSize` lets a session have by default; nobody needs
 * more of it to see what failed.
 */
const MOST_DATA = 262_144;

/** What the delivery of events goes by: the options of events, the pace, and the limits of one partition. */
export function eventRules(
  { grace, events, expirations }: ResolvedRedisSessionOptions,
  pace: DeliveryPace,
  partitions: SessionPartitions,
) {
  const maxSize = partitions.shareOf(events.deadLetters.maxSize);
  // So that there is room for two.
  const maxDataSize = Math.min(MOST_DATA, Math.floor(maxSize / 2));
  const deadLetters = { ...events.deadLetters, maxSize, maxDataSize };
  return { ...events, ...pace, grace, store: expirations.store, mostAbandoned: MOST_ABANDONED, deadLetters };
}
