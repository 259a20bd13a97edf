import { MORE } from './help-text.js';
import { UsageError } from './usage.error.js';

const FORM = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

/**
 * The time that an option has, in epoch milliseconds; undefined for `now`. It has a zone: without one, it would be
 * another time on each machine.
 */
export function zonedTime(option: string, given: string): number | undefined {
  if (given === 'now') return undefined;
  const [, day] = FORM.exec(given) ?? [];
  const at = Date.parse(given);
  if (day !== undefined && isDay(day) && at > 0) return at;
  throw new UsageError(
    `--${option} must be now, or a time with its zone such as 2026-11-26T12:00:00Z, but is ${JSON.stringify(given)}. ${MORE}`,
  );
}

/** JavaScript takes the 30th of February for a day in March. */
function isDay(text: string): boolean {
  const date = new Date(`${text}T00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}
