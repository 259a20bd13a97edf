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
export const MOST_ABANDONED = 5;
