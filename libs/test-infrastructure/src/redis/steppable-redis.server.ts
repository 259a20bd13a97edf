import { RedisServer, type RedisServerOptions } from '@nest-session/testing';
import { ProgramClock } from '../time/program.clock.js';

/**
 * A thread of the memory allocator sleeps until a time of the clock. Where the clock is behind, it would never sleep.
 */
const NO_THREAD_BY_THE_CLOCK = ['--jemalloc-bg-thread', 'no'];

/**
 * A private redis-server whose wall clock a test steps and stops. Needs Linux, gcc and the headers of the C library.
 */
export class SteppableRedisServer extends RedisServer {
  /** Its wall clock, which a test may give to other programs as well. */
  readonly clock = new ProgramClock(this.home);

  static override start(options?: RedisServerOptions): Promise<SteppableRedisServer> {
    const args = [...NO_THREAD_BY_THE_CLOCK, ...(options?.args ?? [])];
    return super.start({ ...options, args }) as Promise<SteppableRedisServer>;
  }

  /**
   * Moves the wall clock of Redis by this many milliseconds; back when negative. A restart keeps the setting. The
   * monotonic clock, which paces the periodic work of Redis, is not changed.
   */
  async stepClock(milliseconds: number): Promise<void> {
    await this.clock.step(milliseconds);
  }

  /**
   * Stops the wall clock of Redis, also after a restart: from now on only `stepClock()` moves it. `at`: a time of the
   * clock of this process, by default now.
   */
  async stopClock(at?: number): Promise<void> {
    await this.clock.stop(at);
  }

  protected override environment(): Promise<Readonly<Record<string, string>>> {
    return this.clock.environment();
  }
}
