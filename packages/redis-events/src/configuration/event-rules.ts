import { RETRIES } from '@nest-session/core/internal';
import type { Partitions } from '../partitions/partitions.js';
import type { ResolvedEventOptions } from './delivery.options.js';

export const DELIVERY_OPTIONS = Symbol('DELIVERY_OPTIONS');
export const CONSUMER_IDENTITY = Symbol('CONSUMER_IDENTITY');
export const DELIVERY_PACE = Symbol('DELIVERY_PACE');
export const EVENT_RULES = Symbol('EVENT_RULES');
/** Scripts are commands of a connection: makes those of requests on the one that a request has. */
export const REQUEST_STREAM_SCRIPTS = Symbol('REQUEST_STREAM_SCRIPTS');

export interface DeliveryOptions extends Pick<EventRules, 'grace'> {
  readonly events: ResolvedEventOptions;
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

/** What the delivery of events goes by: options, pace, and limits of a partition. Times are milliseconds. */
export interface EventRules extends Omit<ResolvedEventOptions, 'deadLetters'>, DeliveryPace {
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

export type TrimLimits = Pick<EventRules, 'grace' | 'retention' | 'maxLength'>;
export type RetryRules = Pick<EventRules, 'firstBackOff' | 'longestBackOff' | 'retention'> & {
  readonly deadLetters: Pick<EventRules['deadLetters'], 'maxSize' | 'maxDataSize'>;
};

/** The pace of applications; tests override it. */
export const PACE: DeliveryPace = {
  pollInterval: 1000,
  firstBackOff: RETRIES.firstBackOff,
  longestBackOff: RETRIES.longestBackOff,
  wishRenewal: 60_000,
};

const MOST_ABANDONED = 5;

/** Most bytes of all dead letters, which the partitions share: clients that make a handler fail must not fill Redis. */
export const DEAD_LETTER_BYTES = 64 * 2 ** 20;
/** As many as `maxSessionSize` lets a session have by default. */
const MOST_DATA = 262_144;

export function eventRules(
  { grace, events }: DeliveryOptions,
  pace: DeliveryPace,
  partitions: Partitions,
  deadLetterBytes = DEAD_LETTER_BYTES,
): EventRules {
  const maxSize = partitions.shareOf(deadLetterBytes);
  // So that there is room for two.
  const maxDataSize = Math.min(MOST_DATA, Math.floor(maxSize / 2));
  const deadLetters = { ...events.deadLetters, maxSize, maxDataSize };
  return { ...events, ...pace, grace, mostAbandoned: MOST_ABANDONED, deadLetters };
}
