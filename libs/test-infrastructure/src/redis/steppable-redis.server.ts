import { RedisServer, type RedisServerOptions } from '@nest-session/testing';
import { RedisClock } from './redis.clock.js';

/** A private redis-server whose wall clock the test steps and stops. Needs Linux, gcc and the headers of the C library. */
export class SteppableRedisServer extends RedisServer {
  readonly #clock = new RedisClock(this.home);

  static override start(options?: RedisServerOptions): Promise<SteppableRedisServer> {
    return super.start(options) as Promise<SteppableRedisServer>;
  }

  /**
   * Sets the wall clock of Redis ahead, or back, by so many milliseconds; a restart keeps the setting. The monotonic clock,
   * which decides how often Redis does its periodic work, runs on as before.
   */
  async stepClock(milliseconds: number): Promise<void> {
    await this.#clock.step(milliseconds);
  }

  /** Stops the wall clock of Redis, also over a restart: from now on `stepClock()` alone moves it. */
  async stopClock(): Promise<void> {
    await this.#clock.stop();
  }

  protected override environment(): Promise<Readonly<Record<string, string>>> {
    return this.#clock.environment();
  }
}
