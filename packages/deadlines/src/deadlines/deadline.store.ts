import type { AttributeSerializer } from '@nest-session/core';

/** Milliseconds for which `cancel()` and `reschedule()` answer that a deadline has fired. */
export const FIRED_KNOWN_FOR = 3_600_000;

/** Milliseconds from now by the store's clock, or an instant in epoch milliseconds. */
export type Due = { readonly in: number } | { readonly at: number };

/** What happens to the deadline that waits under the same key. */
export type IfScheduled = 'replace' | 'keep' | 'earlier' | 'later';

export interface NewDeadline {
  readonly key: string;
  /** The id that its event will have. */
  readonly id: string;
  readonly due: Due;
  /** The text of its data; undefined without data. */
  readonly text: string | undefined;
  readonly ifExists: IfScheduled;
  /** The W3C traceparent of the span that schedules it. */
  readonly traceparent?: string | undefined;
}

/** A deadline that waits. */
export interface ScheduledDeadline<T> {
  /** The `id` of its event. */
  readonly id: string;
  /** Your key. */
  readonly key: string;
  /** The data with which it was scheduled; undefined without any. */
  readonly data: T;
  /** When it is due: epoch milliseconds by the store's clock. */
  readonly dueAt: number;
  /** When it was scheduled, in epoch milliseconds by the store's clock; `reschedule()` does not change it. */
  readonly scheduledAt: number;
}

/** The same as a store has it: with the text of its data, undefined without data. */
export interface StoredDeadline extends Omit<ScheduledDeadline<unknown>, 'data'> {
  readonly text: string | undefined;
}

/** `full`: as many wait as `maxScheduled` allows. */
export type ScheduleReply = 'scheduled' | 'replaced' | 'kept' | 'full';

/** How `schedule()` answers: under this key none waited; the new one took its place; the one that waited stayed. */
export type ScheduleOutcome = Exclude<ScheduleReply, 'full'>;

/** How `reschedule()` answers: the time was changed; it has fired within the last hour; none waits under this key. */
export type RescheduleOutcome = 'moved' | 'fired' | 'none';

/**
 * How `cancel()` answers. `'cancelled'`: no handler is ever called with it. `'fired'`: it came within the last hour, so
 * its handlers are called, or were. `'none'`: none waits under this key.
 */
export type CancelOutcome = 'cancelled' | 'fired' | 'none';

/** At most `limit` of those that wait: due before an epoch time, and behind one; undefined: all. */
export interface DeadlinePage {
  readonly before: number | undefined;
  readonly after: Pick<StoredDeadline, 'key' | 'dueAt'> | undefined;
  readonly limit: number;
}

/**
 * Where deadlines wait. Each call for one key is atomic: a deadline is either cancelled or fired, never both. Rejects
 * with a SessionStoreError when the store fails.
 */
export abstract class DeadlineStore {
  /** Tells the store from others in tracing channels; empty for one without a namespace. */
  abstract readonly namespace: string;
  /** One reply for each. The keys differ. */
  abstract schedule(name: string, deadlines: readonly NewDeadline[], most: number): Promise<ScheduleReply[]>;
  /** Gives the waiting deadline of a key another time. Its id and its data stay. */
  abstract reschedule(name: string, key: string, due: Due): Promise<RescheduleOutcome>;
  abstract cancel(name: string, key: string): Promise<CancelOutcome>;
  /** Undefined when none waits under the key. */
  abstract get(name: string, key: string): Promise<StoredDeadline | undefined>;
  abstract count(name: string): Promise<number>;
  /** Those that wait, in the order of their times. */
  abstract list(name: string, page: DeadlinePage): Promise<StoredDeadline[]>;
  abstract readonly serializer: Pick<AttributeSerializer, 'serialize' | 'deserialize'>;
}
