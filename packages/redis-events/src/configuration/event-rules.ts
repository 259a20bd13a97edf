import type { ResolvedEventOptions } from '../configuration/delivery.options.js';

/**
 * What the delivery of the events of a module goes by: its options, the pace, and the limits of a partition. Times are
 * milliseconds.
 */
export interface EventRules extends Omit<ResolvedEventOptions, 'deadLetters'>, DeliveryPace {
  /** For how long an event is kept that all groups have handled. */
  readonly grace: number;
  /** The number of instances that crashed while they handled it, after which an event becomes a dead letter. */
  readonly mostAbandoned: number;
  readonly deadLetters: {
    readonly retention: number;
    /** Most bytes of the dead letters of a partition. */
    readonly maxSize: number;
    /** Most bytes of the data in a dead letter; larger data is left out. */
    readonly maxDataSize: number;
  };
}

export interface DeliveryPace {
  /** How often an instance polls for due retries at most; on the average a quarter later. */
  readonly pollInterval: number;
  /** The back-off before the second attempt; doubles with each attempt. */
  readonly firstBackOff: number;
  readonly longestBackOff: number;
  /** How often an instance tells again what its broadcast handlers want and, beside others, what its group does. */
  readonly wishRenewal: number;
}

/** How much of the events stream is kept. */
export type TrimLimits = Pick<EventRules, 'grace' | 'retention' | 'maxLength'>;
/** How failed entries are retried. */
export type RetryRules = Pick<EventRules, 'firstBackOff' | 'longestBackOff' | 'retention'> & {
  readonly deadLetters: Pick<EventRules['deadLetters'], 'maxSize' | 'maxDataSize'>;
};
