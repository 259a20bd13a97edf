import { MORE } from './help-text.js';
import { UsageError } from './usage.error.js';

/** The number that an option has. */
export function wholeNumber(option: string, given: string): number {
  if (/^\d{1,15}$/.test(given)) return Number(given);
  throw new UsageError(`--${option} must be a whole number, but is ${JSON.stringify(given)}. ${MORE}`);
}
