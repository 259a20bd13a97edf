import { RETRIES } from '@nest-session/core/internal';
import type { ResolvedEventOptions } from '../configuration/delivery.options.js';
import type { Partitions } from '../partitions/partitions.js';
import type { DeliveryPace, EventRules } from '../scripts/event-rules.js';
import { DEAD_LETTER_BYTES } from '../scripts/event-stream.scripts.js';

/** The `DeliveryOptions` of the module. */
export const DELIVERY_OPTIONS = Symbol('DELIVERY_OPTIONS');
/** The `ConsumerIdentity` of this instance. */
export const CONSUMER_IDENTITY = Symbol('CONSUMER_IDENTITY');
export const DELIVERY_PACE = Symbol('DELIVERY_PACE');
/** The `EventRules` of the module. */
export const EVENT_RULES = Symbol('EVENT_RULES');
/** Scripts are commands of a connection: makes those of requests on the one that a request has. */
export const REQUEST_STREAM_SCRIPTS = Symbol('REQUEST_STREAM_SCRIPTS');

/** The options of a module that the delivery of its events goes by. */
export interface DeliveryOptions extends Pick<EventRules, 'grace'> {
  readonly events: ResolvedEventOptions;
}

/** The pace of applications; tests override it. */
export const PACE: DeliveryPace = {
  pollInterval: 1000,
  firstBackOff: RETRIES.firstBackOff,
  longestBackOff: RETRIES.longestBackOff,
  wishRenewal: 60_000,
};

/** The limit `mostAbandoned` of applications. */
const MOST_ABANDONED = 5;

/** The most bytes of data in a dead letter: as many as `maxSessionSize` lets a session have by default. */
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
