import { parseDuration } from '../option-reading/duration.js';
import type { UpdateSession } from './session-change.js';
import type { SessionRecord } from './session-record.js';

/** The timeouts of a session in seconds; -1: none. */
export type SessionTimeouts = Pick<SessionRecord, 'maxInactiveInterval' | 'absoluteTimeout'>;

export type TimeoutChanges = Pick<UpdateSession, 'maxInactiveInterval' | 'absoluteTimeout'>;

type BeginTimes = Pick<SessionRecord, 'creationTime' | 'authenticatedAt'>;

const NEVER = -1;

/** The earlier end of both timeouts; Infinity for never. `accessed`: from when the idle timeout counts. */
export function endOf(maxInactiveInterval: number, accessed: number, absoluteExpiry: number): number {
  return Math.min(endAfter(maxInactiveInterval, accessed), absoluteExpiry);
}

export function endAfter(seconds: number, since: number): number {
  return seconds < 0 ? Infinity : since + seconds * 1000;
}

/** Since when the absolute timeout counts, and by what an epoch ends a session: the creation or a later sign-in. */
export function beganAt({ creationTime, authenticatedAt = creationTime }: BeginTimes): number {
  return Math.max(creationTime, authenticatedAt);
}

/** The absolute timeout that passes at `absoluteExpiry`: none where that is not finite. */
export function absoluteTimeoutOf(session: BeginTimes & { readonly absoluteExpiry: number }): number {
  const { absoluteExpiry } = session;
  return Number.isFinite(absoluteExpiry) ? Math.round((absoluteExpiry - beganAt(session)) / 1000) : NEVER;
}

export function timeoutChanges(now: SessionTimeouts, stored: TimeoutChanges): TimeoutChanges {
  // Stores know one way to end a session at once, whichever timeout was set to 0.
  if (endsNow(now)) return { maxInactiveInterval: 0 };
  const changed = (name: keyof SessionTimeouts) => (now[name] === stored[name] ? undefined : now[name]);
  return { maxInactiveInterval: changed('maxInactiveInterval'), absoluteTimeout: changed('absoluteTimeout') };
}

export function haveChanged(now: SessionTimeouts, stored: TimeoutChanges): boolean {
  return now.maxInactiveInterval !== stored.maxInactiveInterval || now.absoluteTimeout !== stored.absoluteTimeout;
}

export function endsNow({ maxInactiveInterval, absoluteTimeout }: TimeoutChanges): boolean {
  return maxInactiveInterval === 0 || absoluteTimeout === 0;
}

/** @throws RangeError for anything but whole seconds, a duration of whole seconds, or `'never'` */
export function secondsOf(name: keyof SessionTimeouts, timeout: unknown): number {
  if (timeout === 'never') return NEVER;
  const seconds = typeof timeout === 'number' ? timeout : Number(parseDuration(timeout)) / 1000;
  if (isSeconds(seconds)) return seconds < 0 ? NEVER : seconds;
  throw new RangeError(
    `${name} takes whole seconds, or a duration of whole seconds such as '30m'. 'never' or -1 means no such timeout; ` +
      '0 ends the session',
  );
}

/** Whether it is a whole number of 32 bits, in which Spring Session keeps timeouts. */
function isSeconds(seconds: number): boolean {
  return Number.isInteger(seconds) && Math.abs(seconds) < 2 ** 31;
}
