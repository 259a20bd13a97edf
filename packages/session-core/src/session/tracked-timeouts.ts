import { parseDuration } from '../option-reading/duration.js';
import type { UpdateSession } from './session-change.js';
import type { SessionRecord } from './session-record.js';

/** The timeouts of a session in seconds; -1: none. */
export type SessionTimeouts = Pick<SessionRecord, 'maxInactiveInterval' | 'absoluteTimeout'>;

type TimeoutChanges = Pick<UpdateSession, 'maxInactiveInterval' | 'absoluteTimeout'>;

/** A timeout that never passes. */
const NEVER = -1;

const NO_CHANGES: TimeoutChanges = { maxInactiveInterval: undefined, absoluteTimeout: undefined };

/** The timeouts of a session, which remember whether they must be written. */
export class TrackedTimeouts {
  #now: SessionTimeouts;
  #stored: SessionTimeouts;

  constructor({ maxInactiveInterval, absoluteTimeout }: SessionTimeouts) {
    this.#now = this.#stored = { maxInactiveInterval, absoluteTimeout };
  }

  get all(): SessionTimeouts {
    return this.#now;
  }

  /** Whether one of them was set to 0. */
  get endNow(): boolean {
    return this.#now.maxInactiveInterval === 0 || this.#now.absoluteTimeout === 0;
  }

  get hasChanges(): boolean {
    if (this.#now === this.#stored) return false;
    const { maxInactiveInterval, absoluteTimeout } = this.changes();
    return maxInactiveInterval !== undefined || absoluteTimeout !== undefined;
  }

  /** @throws RangeError for anything but whole seconds, a duration of whole seconds, or `'never'` */
  set(name: keyof SessionTimeouts, timeout: number | string): void {
    this.#now = { ...this.#now, [name]: secondsOf(name, timeout) };
  }

  /** Changes the idle timeout if it is still this one: the application has set no other. */
  exchange(from: number, to: number): void {
    if (this.#now.maxInactiveInterval === from) this.set('maxInactiveInterval', to);
  }

  /** The timeouts that the store has. */
  asStored(): TrackedTimeouts {
    return new TrackedTimeouts(this.#stored);
  }

  /** The timeouts that the store does not have yet. */
  changes(): TimeoutChanges {
    if (this.#now === this.#stored) return NO_CHANGES;
    // Stores know one way to end a session at once, whichever timeout was set to 0.
    if (this.endNow) return { maxInactiveInterval: 0 };
    const changed = (name: keyof SessionTimeouts) =>
      this.#now[name] === this.#stored[name] ? undefined : this.#now[name];
    return { maxInactiveInterval: changed('maxInactiveInterval'), absoluteTimeout: changed('absoluteTimeout') };
  }

  /** Records that the store has these timeouts. */
  saved({ maxInactiveInterval, absoluteTimeout }: TimeoutChanges): void {
    if (maxInactiveInterval === undefined && absoluteTimeout === undefined) return;
    this.#stored = {
      maxInactiveInterval: maxInactiveInterval ?? this.#stored.maxInactiveInterval,
      absoluteTimeout: absoluteTimeout ?? this.#stored.absoluteTimeout,
    };
  }
}

/** Milliseconds since the store renewed the session: its full time to live, less what is left of it. */
export function idleTimeOf(record: SessionRecord): number | undefined {
  const { creationTime, lastAccessedTime, maxInactiveInterval, absoluteTimeout, timeToLive } = record;
  if (timeToLive === undefined) return undefined;
  const since = Math.max(creationTime, record.authenticatedAt ?? 0);
  const idle = maxInactiveInterval < 0 ? Infinity : maxInactiveInterval * 1000;
  const absolute = absoluteTimeout < 0 ? Infinity : since + absoluteTimeout * 1000 - lastAccessedTime;
  return Math.max(0, Math.min(idle, absolute) - timeToLive);
}

function secondsOf(name: string, timeout: unknown): number {
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
