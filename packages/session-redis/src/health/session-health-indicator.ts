import { Inject, Injectable, Optional } from '@nestjs/common';
import { type HealthIndicatorResult, HealthIndicatorService } from '@nestjs/terminus';
import type { Duration } from '@nest-session/core';
import { type HealthLook, OptionReader } from '@nest-session/core/internal';
import { SessionHealth } from './session-health.js';

/** Options of `SessionHealthIndicator.isHealthy()`. */
export interface SessionHealthOptions {
  /** A group is late when it has left an event unread for longer than this. @default '5m' */
  readonly late?: Duration;
}

/**
 * Reports the health of the sessions to `@nestjs/terminus` 11 or 12. List it in `providers` of the module that imports
 * `TerminusModule`, and inject it. Do not use it in a liveness or readiness probe: an outage of Redis would restart
 * all instances, or take them all out of the load balancer.
 */
@Injectable()
export class SessionHealthIndicator {
  /** @internal List it in `providers`, and inject it. */
  constructor(
    @Inject(HealthIndicatorService) private readonly indicators: HealthIndicatorService,
    // Not there in a test that replaces RedisSessionModule.
    @Optional() @Inject(SessionHealth) private readonly health?: HealthLook,
  ) {}

  /**
   * Loads a session that does not exist, in the way of a request, and looks at what works in the background. It never
   * rejects because of Redis, and resolves within `commandTimeout`.
   *
   * - `down`: the load failed. `reasons` says why.
   * - `degraded`, in Terminus 11 `up` with `degraded: true`: sessions can be loaded, but something else is wrong.
   *   `reasons` says what: Redis is full, so that sessions cannot be saved; Redis does not announce expired sessions;
   *   two ticks have passed without a whole cleanup; the groups cannot be read; a group is late; or this instance has
   *   noticed within the last hour that a group lost events or dead letters.
   * - `up`: all of it is well.
   *
   * Beside `reasons`, the result has `redis` (`'up'` or `'down'`), `notifications` (a `KeyspaceState`, or `'off'`) and
   * `groups`: `name`, `lag` (unread events, of which at most 100 are counted in each partition), `oldestUnreadAge` (the
   * age of the oldest of them in seconds), and `dropped` and `lostDeadLetters` as in `SessionEventGroups.list()`. It
   * has no address, password, id, value or name of a user.
   *
   * A check costs one load, one INFO on each node and one read-only script in each partition, all in one round trip.
   * Without `RedisSessionModule`, as in a test that replaces it, it looks at nothing and reports `up`.
   * @throws InvalidSessionOptionsError when `late` is no duration
   */
  async isHealthy<const Key extends string>(
    key: Key,
    options: SessionHealthOptions = {},
  ): Promise<HealthIndicatorResult<Key>> {
    const late = readLate(options);
    const indicator = this.indicators.check(key);
    if (!this.health) return indicator.up();
    const { state, data } = await this.health.look(late);
    if (state === 'up') return indicator.up(data);
    if (state === 'down') return indicator.down(data);
    // Terminus 11 has no third state.
    const hasDegraded: boolean = 'degraded' in indicator;
    return hasDegraded ? indicator.degraded(data) : indicator.up({ degraded: true, ...data });
  }
}

/** Milliseconds. */
function readLate(options: SessionHealthOptions): number {
  const reader = new OptionReader('SessionHealthIndicator', options);
  const late = reader.duration('late', '5m');
  reader.finish();
  return late;
}
