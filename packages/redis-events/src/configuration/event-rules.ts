import { type OptionReader, RETRIES } from '@nest-session/core/internal';
import type { Partitions } from '../partitions/partitions.js';
import type { Duration } from '@nest-session/core';

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

/** How events reach the handlers of a process. */
export interface EventDeliveryOptions {
  /** The group, of which one instance handles each event. A new one begins with the oldest. @default 'default' */
  group?: string;
  /** Whether this process handles events of its group. Broadcast handlers are called anyway. @default true */
  consume?: boolean;
  /** How long an event is kept for groups that lack it. @default '1h' for sessions, '7d' for others */
  retention?: Duration;
  /** Largest number of events, handled or not. The oldest go first. @default 1000000 */
  maxLength?: number;
  /** How long events of a dead instance wait for another, 1s to 1d. Handlers may take longer. @default '30s' */
  lease?: Duration;
  /** Attempts before an event becomes a dead letter, 1 to 1000, 1 s to 5 minutes apart. @default 10 */
  attempts?: number;
  /** All take about 64 MiB at most. Then the oldest go of the handler whose dead letters take most room. */
  deadLetters?: {
    /** How long a dead letter is kept. At least 1m. @default '30d' */
    retention?: Duration;
  };
  /** How long handlers may continue at a shutdown; then others repeat them. At most 1d. @default '10s' */
  shutdownTimeout?: Duration;
  /** Number of events that one instance handles at a time, 1 to 10000. @default 32 */
  concurrency?: number;
}

/** The same with defaults. Times are milliseconds. */
type ResolvedEventOptions = ReturnType<typeof readEvents>;

const SECOND = 1000;
// A process waits for these itself, and Node.js fires a timer of more than 24 days at once.
const LONGEST_WAIT = 86_400 * SECOND;
export const IN_URL = 'write it into `url`, as in redis://user:password@host:6379/0';
const MOST_PARTITIONS = 1024;

export function readPartitions(reader: OptionReader, isOnCluster: boolean): number {
  return reader.integer('partitions', isOnCluster ? 64 : 1, rangeOfPartitions(isOnCluster));
}

export function rangeOfPartitions(isOnCluster: boolean): { readonly atLeast: number; readonly atMost: number } {
  return { atLeast: isOnCluster ? 2 : 1, atMost: MOST_PARTITIONS };
}

/** The option `events`. `shownGrace`: the grace period in a problem. `usual`: the default of `retention`, in ms. */
export function readEvents(
  reader: OptionReader,
  grace: number,
  { shownGrace = '`grace`', usual = Math.max(3_600_000, grace) } = {},
) {
  const groupProblem = (group: string) => (group.trim() === '' ? 'must not be empty' : undefined);
  // It reads as 0 if it is refused.
  const retention = reader.duration('retention', `${usual}ms`, { atLeast: SECOND });
  if (retention > 0 && retention < grace)
    reader.problem(`Option \`events.retention\` must be at least as long as ${shownGrace}.`);
  const letters = reader.section('deadLetters');
  const deadLetters = { retention: letters.duration('retention', '30d', { atLeast: 60 * SECOND }) };
  letters.finish();
  const events = {
    group: reader.text('group', 'default', groupProblem),
    consume: reader.boolean('consume', true),
    retention,
    maxLength: reader.integer('maxLength', 1_000_000, { atLeast: 1, atMost: Number.MAX_SAFE_INTEGER }),
    lease: reader.duration('lease', '30s', { atLeast: SECOND, atMost: LONGEST_WAIT }),
    attempts: reader.integer('attempts', RETRIES.attempts, { atLeast: 1, atMost: 1000 }),
    deadLetters,
    shutdownTimeout: reader.duration('shutdownTimeout', '10s', { atMost: LONGEST_WAIT }),
    concurrency: reader.integer('concurrency', 32, { atLeast: 1, atMost: 10_000 }),
  };
  reader.finish();
  return events;
}

export function readCommandTimeout(reader: OptionReader): number {
  return reader.duration('commandTimeout', '1s', { atLeast: 10, atMost: LONGEST_WAIT });
}
