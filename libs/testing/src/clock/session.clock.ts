import type { Duration, MapSessionRepository } from '@nest-session/core';
import { parseDuration } from '@nest-session/core/internal';
import type { SessionEventDispatcher } from '@nest-session/core/store';
import { ManualClock } from './manual.clock.js';

/** The clock of the sessions of an application under `TestSessionModule`. It stands still until you advance it. */
export class SessionClock {
  /** @internal `TestSessionModule` creates the clock. Get it from the application. */
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
   * Advances the clock by a duration such as `'31m'`. Resolves when the sessions that expire by then have been
   * reported, and all event handlers have finished. Initialize the application before you call it.
   */
  async advance(duration: Duration): Promise<void> {
    const milliseconds = parseDuration(duration);
    if (typeof milliseconds === 'string') throw new TypeError(`advance(duration) ${milliseconds}`);
    this.clock.advance(milliseconds);
    await this.repository.endExpired();
    await this.dispatcher.idle();
  }
}
