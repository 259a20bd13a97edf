import type { DataOf, Deadline } from './deadline.js';

/** What a `DeadlineEvent` is made of. */
export interface DeadlineEventInit<T> {
  /** The same at every delivery of one deadline. */
  readonly id: string;
  /** The name of its kind. */
  readonly name: string;
  /** Your key, as it was scheduled. */
  readonly key: string;
  /** The data with which it was scheduled; undefined without any. */
  readonly data: T;
  /** When it was due, in epoch milliseconds. */
  readonly dueAt: number;
  /** When it was found to be due, in epoch milliseconds. */
  readonly at: number;
  /** The number of the attempt. @default 1 */
  readonly attempt?: number;
  /** The W3C traceparent of the span that scheduled it. */
  readonly traceparent?: string | undefined;
}

/**
 * A deadline that has come. `@OnDeadline` methods receive it. Write the type of the kind: `DeadlineEvent<typeof
 * paymentDue>`.
 */
export class DeadlineEvent<D extends Deadline<unknown> = Deadline<unknown>> {
  /**
   * Tells this deadline from all others, also from a later one of the same key. It is the same at every delivery, every
   * retry, every replay and in every group: use it where an effect must happen once.
   */
  readonly id: string;
  /** The name of its kind. */
  readonly name: string;
  /** Your key, as it was scheduled. */
  readonly key: string;
  /**
   * The data with which it was scheduled; undefined without any. @throws DeadlineDataError where they cannot be read,
   * such as without their key
   */
  declare readonly data: DataOf<D>;
  /** When it was due: epoch milliseconds by the store's clock. */
  readonly dueAt: number;
  /** When it was found to be due, in epoch milliseconds by the store's clock. */
  readonly at: number;
  /** The number of this attempt of the group, from 1. */
  readonly attempt: number;
  /** The W3C traceparent of the span that scheduled it, if there was one. */
  readonly traceparent: string | undefined;

  /** Use it in tests of your handlers. */
  constructor(init: DeadlineEventInit<DataOf<D>>) {
    const { id, name, key, dueAt, at, attempt = 1, traceparent } = init;
    this.id = id;
    this.name = name;
    this.key = key;
    // Read when a handler asks for it: what cannot be read then fails that handler, and the deadline is kept.
    Object.defineProperty(this, 'data', { enumerable: true, get: () => init.data });
    this.dueAt = dueAt;
    this.at = at;
    this.attempt = attempt;
    this.traceparent = traceparent;
  }

  /** How many milliseconds after its time it was found. Time that handlers and retries take comes on top. */
  get late(): number {
    return Math.max(0, this.at - this.dueAt);
  }
}
