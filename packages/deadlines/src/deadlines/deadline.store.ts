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

/** A deadline that waits, as a store has it. */
export interface StoredDeadline {
  /** The id of its event. */
  readonly id: string;
  /** The key of the application. */
  readonly key: string;
  /** The text of its data; undefined without data. */
  readonly text: string | undefined;
  /** Epoch milliseconds by the store's clock. */
  readonly dueAt: number;
  /** When it was scheduled; `reschedule()` does not change it. */
  readonly scheduledAt: number;
}

/** `full`: as many as `maxScheduled` allows wait already. */
export type ScheduleReply = 'scheduled' | 'replaced' | 'kept' | 'full';
/** `moved`: it has the new time. `fired`: it came within the last hour. `none`: none waits under the key. */
export type RescheduleReply = 'moved' | 'fired' | 'none';
/** `cancelled`: it never fires. `fired`: it came within the last hour. `none`: none waits under the key. */
export type CancelReply = 'cancelled' | 'fired' | 'none';

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
  abstract reschedule(name: string, key: string, due: Due): Promise<RescheduleReply>;
  /** Takes the waiting deadline of a key back. */
  abstract cancel(name: string, key: string): Promise<CancelReply>;
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
