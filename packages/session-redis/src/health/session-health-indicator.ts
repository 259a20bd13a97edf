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
 * Reports the health of the sessions to `@nestjs/terminus` 11 or 12: list it in `providers`, and inject it. Not for
 * liveness or readiness probes: an outage of Redis would restart all instances, or take them all out of the balancer.
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
   * Loads a session that does not exist, as a request does, and looks at what works in the background: one INFO on each
   * node and one script in each partition. It resolves within `commandTimeout`.
   * - `down`: the load failed. `reasons` says why.
   * - `degraded`, in Terminus 11 `up` with `degraded: true`: `reasons` says that Redis is full, or does not announce
   *   expired sessions; two ticks have passed without a whole cleanup; a group is late, has lost something within the
   *   last hour, or the groups cannot be read.
   * - `up`: all of it is well; also without `RedisSessionModule`, as in a test that replaces it.
   * The result also has `redis`, `notifications` (a `KeyspaceState`, or `'off'`) and `groups` with `name`, `lag` (at
   * most 100 in each partition), `oldestUnreadAge` (in seconds), `dropped` and `lostDeadLetters`. It names no address,
   * id, value or user. @throws InvalidSessionOptionsError when `late` is no duration
   */
  async isHealthy<const Key extends string>(
    key: Key,
    options: SessionHealthOptions = {},
  ): Promise<HealthIndicatorResult<Key>> {
    const reader = new OptionReader('SessionHealthIndicator', options);
    const late = reader.duration('late', '5m');
    reader.finish();
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
