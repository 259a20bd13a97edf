declare const DATA: unique symbol;

/**
 * A kind of deadlines, such as that of all unpaid orders: its name, and the type of the data that each deadline
 * carries. See `deadline()`.
 */
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

/** Whether a value was made by `deadline()`, or is like it. */
export function isDeadline(value: unknown): value is Deadline<unknown> {
  const name: unknown = value instanceof Object ? Reflect.get(value, 'name') : undefined;
  return typeof name === 'string' && NAME.test(name);
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 120)) : `a value of type ${typeof value}`;
}
