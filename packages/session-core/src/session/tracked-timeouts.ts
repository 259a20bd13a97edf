import type { SessionRecord, UpdateSession } from './session-record.js';

/** How long a session lives. */
export type SessionTimeouts = Pick<SessionRecord, 'maxInactiveInterval' | 'absoluteTimeout'>;

type TimeoutChanges = Pick<UpdateSession, 'maxInactiveInterval' | 'absoluteTimeout'>;

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

  get hasChanges(): boolean {
    const { maxInactiveInterval, absoluteTimeout } = this.changes();
    return maxInactiveInterval !== undefined || absoluteTimeout !== undefined;
  }

  /** @throws RangeError */
  setMaxInactiveInterval(seconds: number): void {
    if (!isSeconds(seconds)) {
      throw new RangeError(
        'maxInactiveInterval takes whole seconds, or a negative number for a session that never expires',
      );
    }
    this.#now = { ...this.#now, maxInactiveInterval: seconds };
  }

  /** @throws RangeError */
  setAbsoluteTimeout(seconds: number): void {
    if (!isSeconds(seconds) || (seconds <= 0 && seconds !== -1)) {
      throw new RangeError(
        'absoluteTimeout takes whole seconds from the creation of the session, or -1 for none; call invalidate() to end it now',
      );
    }
    this.#now = { ...this.#now, absoluteTimeout: seconds };
  }

  /** Those that the store does not know. */
  changes(): TimeoutChanges {
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

/** Whole, and in the 32 bits that Spring keeps such times in. */
function isSeconds(seconds: unknown): seconds is number {
  return Number.isInteger(seconds) && Math.abs(Number(seconds)) < 2 ** 31;
}
