import type { Partitions } from '../partitions/partitions.js';
import type { ConsumerOptions } from './event.consumer.js';
import type { TrimmerOptions } from './event.trimmer.js';
import { DEAD_LETTER_BYTES } from '../scripts/stream/event-stream.scripts.js';
import type { GroupRules } from './consumer-group-member.js';
import { type DeliveryPace, MOST_ABANDONED } from './retry-rules.js';

/** The options of a module that the delivery of its events goes by. */
export interface DeliveryOptions {
  /** Milliseconds for which an event is kept that all groups have handled. */
  readonly grace: number;
  readonly events: Omit<TrimmerOptions, 'grace' | 'deadLetters'> &
    Omit<ConsumerOptions, keyof DeliveryPace> &
    Pick<GroupRules, 'attempts'> & { readonly group: string; readonly deadLetters: { readonly retention: number } };
}

/** The most bytes of data in a dead letter: as many as `maxSessionSize` lets a session have by default. */
const MOST_DATA = 262_144;

/** What the delivery of events goes by: the options of events, the pace, and the limits of one partition. */
export function eventRules(
  { grace, events }: DeliveryOptions,
  pace: DeliveryPace,
  partitions: Partitions,
  deadLetterBytes = DEAD_LETTER_BYTES,
) {
  const maxSize = partitions.shareOf(deadLetterBytes);
  // So that there is room for two.
  const maxDataSize = Math.min(MOST_DATA, Math.floor(maxSize / 2));
  const deadLetters = { ...events.deadLetters, maxSize, maxDataSize };
  return { ...events, ...pace, grace, mostAbandoned: MOST_ABANDONED, deadLetters };
}
