/**
 * What the delivery of the events of a module goes by: its options, the pace, and the limits of a partition. Times are
 * milliseconds.
 */
export interface EventRules {
  /** Name of the group of this instance. */
  readonly group: string;
  /** Whether this instance handles events of its group. */
  readonly consume: boolean;
  /** Number of entries that it handles at a time. */
  readonly concurrency: number;
  /** For how long handlers may go on when the application shuts down. */
  readonly shutdownTimeout: number;
  /** For how long an event is kept that all groups have handled. */
  readonly grace: number;
  /** For how long any other event is kept and, after a failure, data that only its entry needs. */
  readonly retention: number;
  /** Largest number of events. */
  readonly maxLength: number;
  /** How long after its last renewal another instance takes an entry over. */
  readonly lease: number;
  /** The number of failures after which an event becomes a dead letter. */
  readonly attempts: number;
  /** The number of instances that crashed while they handled it, after which it does as well. */
  readonly mostAbandoned: number;
  /** How often an instance polls for due retries at most; on the average a quarter later. */
  readonly pollInterval: number;
  /** The back-off before the second attempt; doubles with each attempt. */
  readonly firstBackOff: number;
  readonly longestBackOff: number;
  /** How often an instance tells again what its broadcast handlers want and, beside others, what its group does. */
  readonly wishRenewal: number;
  readonly deadLetters: {
    readonly retention: number;
    /** Most bytes of the dead letters of a partition. */
    readonly maxSize: number;
    /** Most bytes of the data in a dead letter; larger data is left out. */
    readonly maxDataSize: number;
  };
}

/** How much of the events stream is kept. */
export type TrimLimits = Pick<EventRules, 'grace' | 'retention' | 'maxLength'>;
/** How failed entries are retried. */
export type RetryRules = Pick<EventRules, 'firstBackOff' | 'longestBackOff' | 'retention'> & {
  readonly deadLetters: Pick<EventRules['deadLetters'], 'maxSize' | 'maxDataSize'>;
};
