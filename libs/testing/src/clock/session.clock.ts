import type { Duration, MapSessionRepository } from '@nest-session/core';
import { parseDuration, type SessionEventDispatcher } from '@nest-session/core/store';
import { ManualClock } from './manual.clock.js';

/** The time of the sessions of an application that is tested with `TestSessionModule`. It stands still until it is advanced. */
export class SessionClock {
  /** @internal `TestSessionModule` does this: get it from the application. */
  constructor(
    private readonly clock: ManualClock,
    private readonly repository: MapSessionRepository,
    private readonly dispatcher: SessionEventDispatcher,
  ) {}

  /** Epoch milliseconds. */
  now(): number {
    return this.clock.now();
  }

  /**
   * Lets so much time pass, such as `'31m'`. Resolves when the sessions that expire by then have been reported, and all
   * handlers of events have finished; of an application that is initialized.
   */
  async advance(duration: Duration): Promise<void> {
    const milliseconds = parseDuration(duration);
    if (typeof milliseconds === 'string') throw new TypeError(`advance(duration) ${milliseconds}`);
    this.clock.advance(milliseconds);
    await this.repository.endExpired();
    await this.dispatcher.idle();
  }
}
