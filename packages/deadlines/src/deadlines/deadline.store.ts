/** Milliseconds for which `cancel()` and `reschedule()` answer that a deadline has fired. */
export const FIRED_KNOWN_FOR = 3_600_000;

/** When a deadline is due: milliseconds from now by the store's clock, or an instant in epoch milliseconds. */
export type Due = { readonly in: number } | { readonly at: number };

/** What happens to the deadline that waits under the same key. */
export type IfScheduled = 'replace' | 'keep' | 'earlier' | 'later';

/** A deadline to schedule. */
export interface NewDeadline {
  /** The key of the application. */
  readonly key: string;
  /** The id that its event will have. */
  readonly id: string;
  /** When it is due. */
  readonly due: Due;
  /** The text of its data; undefined without data. */
  readonly text: string | undefined;
  /** What happens to the one that waits under the same key. */
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

/** `full`: as many as `maxScheduled` allows wait already. */
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

/** A page of waiting deadlines. */
export interface DeadlinePage {
  /** Only those that are due before, in epoch milliseconds; undefined: all. */
  readonly before: number | undefined;
  /** Only those behind this one; undefined: from the first one. */
  readonly after: Pick<StoredDeadline, 'key' | 'dueAt'> | undefined;
  /** At most so many. */
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
  /** Takes the waiting deadline of a key back. */
  abstract cancel(name: string, key: string): Promise<CancelOutcome>;
  /** Undefined when none waits under the key. */
  abstract get(name: string, key: string): Promise<StoredDeadline | undefined>;
  /** How many of a name wait. */
  abstract count(name: string): Promise<number>;
  /** Those that wait, in the order of their times. */
  abstract list(name: string, page: DeadlinePage): Promise<StoredDeadline[]>;
  /** Turns data into text and back. */
  abstract readonly serializer: {
    serialize(value: unknown): string;
    deserialize(text: string): unknown;
  };
}
