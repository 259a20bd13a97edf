import { MORE } from './help-text.js';
import { UsageError } from './usage.error.js';

interface Range {
  readonly atLeast?: number;
  readonly atMost?: number;
}

/** The number that an option has. */
export function wholeNumber(option: string, given: string, { atLeast = 0, atMost = 1e9 }: Range = {}): number {
  if (!/^\d{1,15}$/.test(given))
    throw new UsageError(`--${option} must be a whole number, but is ${JSON.stringify(given)}. ${MORE}`);
  if (Number(given) >= atLeast && Number(given) <= atMost) return Number(given);
  throw new UsageError(`--${option} must be from ${atLeast} to ${atMost}, but is ${given}. ${MORE}`);
}
