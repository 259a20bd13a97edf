declare const DATA: unique symbol;

/** A kind of deadlines, such as all of unpaid orders: its name, and the type of their data. See `deadline()`. */
export interface Deadline<T = undefined> {
  /** The name, which stands in keys, log lines and metrics. */
  readonly name: string;
  /** @internal Only the type exists. */
  readonly [DATA]?: T;
}

/** The type of the data of a kind of deadlines: `DataOf<typeof paymentDue>`. */
export type DataOf<D> = D extends Deadline<infer T> ? T : never;

const NAME = /^[A-Za-z0-9][\w.:-]{0,99}$/;

/**
 * Makes a kind of deadlines: `const paymentDue = deadline<{ total: number }>('order.payment-due')`. Two with one name
 * are the same. Without a type, its deadlines carry no data.
 * @throws TypeError unless the name has 1 to 100 letters, digits, `.`, `:`, `-` and `_`, and begins with a letter or
 *   digit
 */
export function deadline<T = undefined>(name: string): Deadline<T> {
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw new TypeError(
      `deadline() takes a name of 1 to 100 letters, digits, ".", ":", "-" and "_" that begins with a letter or digit, but got ${shown(name)}`,
    );
  }
  return Object.freeze({ name });
}

/** Also a value that is like what `deadline()` makes. */
export function isDeadline(value: unknown): value is Deadline<unknown> {
  const name: unknown = value instanceof Object ? Reflect.get(value, 'name') : undefined;
  return typeof name === 'string' && NAME.test(name);
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 120)) : `a value of type ${typeof value}`;
}

/** What a `DeadlineEvent` is made of. `attempt`: 1 by default. */
export interface DeadlineEventInit<T>
  extends
    Pick<DeadlineEvent, 'id' | 'name' | 'key' | 'dueAt' | 'at'>,
    Partial<Pick<DeadlineEvent, 'attempt' | 'traceparent'>> {
  /** The data with which it was scheduled; undefined without any. */
  readonly data: T;
}

/** A deadline that has come, for `@OnDeadline` methods. Write its kind: `DeadlineEvent<typeof paymentDue>`. */
export class DeadlineEvent<D extends Deadline<unknown> = Deadline<unknown>> {
  /**
   * Tells this deadline from all others, also of the same key; the same at every delivery and in every group: use it
   * where an effect must happen once.
   */
  readonly id: string;
  /** The name of its kind. */
  readonly name: string;
  /** Your key, as it was scheduled. */
  readonly key: string;
  /** The data with which it was scheduled. @throws DeadlineDataError where they cannot be read */
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
    this.id = init.id;
    this.name = init.name;
    this.key = init.key;
    // Read when a handler asks for it: what cannot be read then fails that handler, and the deadline is kept.
    Object.defineProperty(this, 'data', { enumerable: true, get: () => init.data });
    this.dueAt = init.dueAt;
    this.at = init.at;
    this.attempt = init.attempt ?? 1;
    this.traceparent = init.traceparent;
  }

  /** How many milliseconds after its time it was found. Time that handlers and retries take comes on top. */
  get late(): number {
    return Math.max(0, this.at - this.dueAt);
  }
}
