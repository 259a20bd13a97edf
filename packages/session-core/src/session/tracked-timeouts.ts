import { parseDuration } from '../options/duration.js';
import type { UpdateSession } from './session-change.js';
import type { SessionRecord } from './session-record.js';

/** How long a session lives, in seconds; -1: without that end. */
export type SessionTimeouts = Pick<SessionRecord, 'maxInactiveInterval' | 'absoluteTimeout'>;

type TimeoutChanges = Pick<UpdateSession, 'maxInactiveInterval' | 'absoluteTimeout'>;

/** What stores write for a timeout that never passes. */
const NEVER = -1;

/** Timeouts that remember which of them must be written. */
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
    const { maxInactiveInterval, absoluteTimeout } = this.changes();
    return maxInactiveInterval !== undefined || absoluteTimeout !== undefined;
  }

  /** @throws RangeError for what is neither whole seconds nor a duration of whole seconds */
  set(name: keyof SessionTimeouts, timeout: number | string): void {
    this.#now = { ...this.#now, [name]: secondsOf(name, timeout) };
  }

  /** Those that the store does not know. */
  changes(): TimeoutChanges {
    // However the end was asked for, a store knows one way to end a session at once.
    if (this.endNow) return { maxInactiveInterval: 0 };
    const changed = (name: keyof SessionTimeouts) =>
      this.#now[name] === this.#stored[name] ? undefined : this.#now[name];
    return { maxInactiveInterval: changed('maxInactiveInterval'), absoluteTimeout: changed('absoluteTimeout') };
  }

  /** The store has them now. */
  saved({ maxInactiveInterval, absoluteTimeout }: TimeoutChanges): void {
    this.#stored = {
      maxInactiveInterval: maxInactiveInterval ?? this.#stored.maxInactiveInterval,
      absoluteTimeout: absoluteTimeout ?? this.#stored.absoluteTimeout,
    };
  }
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

/** Whole, and in the 32 bits in which Spring keeps such times. */
function isSeconds(seconds: number): boolean {
  return Number.isInteger(seconds) && Math.abs(seconds) < 2 ** 31;
}
