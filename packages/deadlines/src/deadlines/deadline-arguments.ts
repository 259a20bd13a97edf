import { assertObject, assertString, isWellFormed, parseDuration } from '@nest-session/core/internal';
import type { Duration } from '@nest-session/core';
import { isDeadline } from './deadline.js';
import type { Due } from './deadline.store.js';

const LONGEST_KEY = 1024;
// Milliseconds: the year 10000. A later instant is a mistake in units.
const LAST_INSTANT = 253_402_300_800_000;

/** When a deadline is due: after a duration such as `'15m'`, by the store's clock, or at an instant. */
export type DeadlineTime =
  | { readonly in: Duration; readonly at?: undefined }
  /** A `Date`, or epoch milliseconds. In the past: at once. */
  | { readonly at: Date | number; readonly in?: undefined };

/** @throws TypeError unless it is what `deadline()` returns */
export function assertDeadline(kind: unknown): void {
  if (!isDeadline(kind)) throw new TypeError('The first argument must be what deadline() returns');
}

/** @throws TypeError or RangeError for what cannot be a key. The message does not quote it */
export function assertKey(key: unknown): void {
  assertString('The key of a deadline', key);
  const size = Buffer.byteLength(key);
  if (size === 0 || size > LONGEST_KEY)
    throw new RangeError(`The key of a deadline must have 1 to ${LONGEST_KEY} bytes, not ${size}`);
  if (!isWellFormed(key)) throw new RangeError('The key of a deadline must be well-formed Unicode');
}

/** @throws TypeError or RangeError for what can be no place in a list */
export function assertPlace(after: { readonly key: string; readonly dueAt: number }): void {
  assertObject('`after`', after);
  assertKey(after.key);
  instantOf(after.dueAt, 'after.dueAt');
}

/** @throws TypeError or RangeError for what is no time */
export function dueOf(time: DeadlineTime): Due {
  assertObject('The time of a deadline', time);
  const { in: duration, at } = time;
  if ((duration === undefined) === (at === undefined))
    throw new TypeError("A deadline needs either `in`, as in { in: '15m' }, or `at`, a Date or epoch milliseconds");
  if (at !== undefined) return { at: instantOf(at, 'at') };
  const milliseconds = parseDuration(duration);
  if (typeof milliseconds === 'string') throw new TypeError(`\`in\` ${milliseconds}`);
  if (milliseconds > LAST_INSTANT / 2) throw new RangeError('`in` must end before the year 6000');
  return { in: Math.round(milliseconds) };
}

/** Epoch milliseconds. @throws RangeError for what is no instant */
export function instantOf(value: Date | number, name: string): number {
  const instant = value instanceof Date ? value.getTime() : value;
  if (typeof instant !== 'number' || !(instant >= 0 && instant < LAST_INSTANT))
    throw new RangeError(`\`${name}\` must be a Date or epoch milliseconds, from 1970 to the year 9999`);
  return Math.ceil(instant);
}
