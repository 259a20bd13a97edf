import type { OptionReader } from '../option-reading/option.reader.js';
import type { SecurityLevel } from '../option-reading/security-level.js';
import { strictTimeoutProblems } from './strict-security.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
// Spring Session keeps timeouts in 32 bits.
const LONGEST = (2 ** 31 - 1) * SECOND;

/** How often requests renew a session at most while its idle timeout passes. */
export const TOUCHES_PER_TIMEOUT = 30;

// 12 hours are the most that NIST SP 800-63B-4 allows at its highest level.
const DEFAULTS = {
  standard: { absoluteTimeout: 'never', longestAnonymous: Infinity },
  strict: { absoluteTimeout: '12h', longestAnonymous: 30 * MINUTE },
} as const;

/** How long sessions live: milliseconds; Infinity for `'never'`. */
export interface SessionTimeouts {
  /** The idle timeout of a session with a principal. */
  readonly timeout: number;
  /** That of a session without one. */
  readonly anonymousTimeout: number;
  /** From the creation, or the later sign-in. */
  readonly absoluteTimeout: number;
}

/** Reads the timeouts. */
export function readTimeouts(reader: OptionReader, security: SecurityLevel): SessionTimeouts {
  const defaults = DEFAULTS[security];
  const timeout = readTimeout(reader, 'timeout', '30m');
  const anonymousTimeout =
    readTimeout(reader, 'anonymousTimeout', undefined) ?? Math.min(timeout, defaults.longestAnonymous);
  const absoluteTimeout = readTimeout(reader, 'absoluteTimeout', defaults.absoluteTimeout);
  const timeouts = { timeout, anonymousTimeout, absoluteTimeout };
  if (security === 'strict') for (const problem of strictTimeoutProblems(timeouts)) reader.problem(problem);
  return timeouts;
}

function readTimeout(reader: OptionReader, name: string, fallback: string): number;
function readTimeout(reader: OptionReader, name: string, fallback: undefined): number | undefined;
function readTimeout(reader: OptionReader, name: string, fallback: string | undefined): number | undefined {
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
