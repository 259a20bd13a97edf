import type { OptionReader } from '../option-reading/option.reader.js';

const SECOND = 1000;
// Spring Session keeps timeouts in 32 bits.
const LONGEST = (2 ** 31 - 1) * SECOND;

/** Milliseconds; Infinity for `'never'`. */
export function readTimeout(reader: OptionReader, name: string, fallback: string): number;
export function readTimeout(reader: OptionReader, name: string, fallback: undefined): number | undefined;
export function readTimeout(reader: OptionReader, name: string, fallback: string | undefined): number | undefined {
  const rules = { atLeast: SECOND, atMost: LONGEST, never: true };
  const timeout =
    fallback === undefined ? reader.duration(name, fallback, rules) : reader.duration(name, fallback, rules);
  if (timeout !== undefined && timeout !== Infinity && timeout % SECOND !== 0)
    reader.problem(`Option \`${name}\` must be a number of whole seconds.`);
  return timeout;
}

/** Seconds; -1 for Infinity. */
export function inSeconds(timeout: number): number {
  return timeout === Infinity ? -1 : timeout / SECOND;
}
