import type { OptionReader } from '../option-reading/option.reader.js';
import { type SecurityLevel, strictTimeoutProblems } from '../option-reading/strict-security.js';
import { logger } from '../logging/session.logger.js';
import type { ResolvedCookieOptions } from '../resolvers/cookie.options.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
// Spring Session keeps timeouts in 32 bits.
const LONGEST = (2 ** 31 - 1) * SECOND;
const LIFETIME = { atLeast: SECOND, atMost: LONGEST, never: true, wholeSeconds: true };

export const TOUCHES_PER_TIMEOUT = 30;

// 12 hours are the most that NIST SP 800-63B-4 allows at its highest level.
const DEFAULTS = {
  standard: { absoluteTimeout: 'never', longestAnonymous: Infinity },
  strict: { absoluteTimeout: '12h', longestAnonymous: 10 * MINUTE },
} as const;

type Timeouts = ReturnType<typeof readTimeouts>;

/** How long sessions live, and how often requests renew them: milliseconds; Infinity for `'never'`. */
export function readTimeouts(reader: OptionReader, security: SecurityLevel) {
  const defaults = DEFAULTS[security];
  const timeout = reader.duration('timeout', '30m', LIFETIME);
  const anonymousTimeout =
    reader.duration('anonymousTimeout', undefined, LIFETIME) ?? Math.min(timeout, defaults.longestAnonymous);
  const absoluteTimeout = reader.duration('absoluteTimeout', defaults.absoluteTimeout, LIFETIME);
  return { timeout, anonymousTimeout, absoluteTimeout, touchInterval: readTouchInterval(reader, timeout) };
}

function readTouchInterval(reader: OptionReader, timeout: number): number {
  const usual = Math.min(MINUTE, Math.floor(timeout / TOUCHES_PER_TIMEOUT));
  const touchInterval = reader.duration('touchInterval', `${usual}ms`);
  if (touchInterval >= timeout && timeout > 0) {
    reader.problem('Option `touchInterval` must be shorter than `timeout`: sessions in use would expire.');
  }
  return touchInterval;
}

export function* lifetimeProblems(cookie: ResolvedCookieOptions, timeouts: Timeouts): Iterable<string> {
  const { maxAge, rememberMe, security } = cookie;
  if (security === 'strict') yield* strictTimeoutProblems(timeouts, rememberMe);
  const { timeout, touchInterval } = timeouts;
  if (maxAge !== undefined && maxAge * SECOND <= touchInterval) {
    yield 'Option `cookie.maxAge` must be longer than `touchInterval`: the cookies of sessions in use would end.';
  }
  if (rememberMe !== undefined && timeout !== Infinity && rememberMe * SECOND <= timeout) {
    yield 'Option `cookie.rememberMe` must be longer than `timeout`: otherwise it does nothing.';
  }
}

export function warnOfShortSessions(
  { rememberMe }: ResolvedCookieOptions,
  { timeout, absoluteTimeout }: Timeouts,
): void {
  if (rememberMe !== undefined && rememberMe * SECOND > absoluteTimeout) {
    logger.warn(
      `Option \`cookie.rememberMe\` outlives \`absoluteTimeout\`: remembered sessions end after ${absoluteTimeout / SECOND}s ` +
        'all the same. Set a longer `absoluteTimeout`, or set `session.absoluteTimeout` after `session.signIn()`',
    );
  }
  // With 'never', the application says that only the absolute timeout counts.
  if (timeout === Infinity || timeout <= absoluteTimeout) return;
  logger.warn(
    `Option \`timeout\` outlives \`absoluteTimeout\`: sessions end after ${absoluteTimeout / SECOND}s all the same. Set a ` +
      "longer `absoluteTimeout`, or a shorter `timeout`, or `timeout: 'never'`",
  );
}

export function inSeconds(timeout: number): number {
  return timeout === Infinity ? -1 : timeout / SECOND;
}
