import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../net/free-port.js';
import { RedisClock } from './redis.clock.js';
import { RedisProcess } from './redis.process.js';

/** How a private Redis is started. */
export interface RedisServerOptions {
  /** Further arguments, such as `['--maxmemory', '10mb']`; they win over ours. */
  readonly args?: readonly string[] | undefined;
  /** @default a free one */
  readonly port?: number | undefined;
  /** Where Redis keeps its files; left in place by `stop()`. @default a folder of its own, removed by `stop()` */
  readonly dir?: string | undefined;
  /** Whether `stepClock()` and `stopClock()` can be called; needs Linux and gcc. @default false */
  readonly steppableClock?: boolean | undefined;
}

// Between finding a free port and listening on it, somebody else may take it: other test files do the same at once.
const PORT_ATTEMPTS = 10;

/**
 * A real redis-server of a test's own: on 127.0.0.1, without persistence unless `args` ask for it, and gone with the
 * process that started it, however that ends. The program is `REDIS_SERVER` of the environment, else `redis-server`.
 */
export class RedisServer {
  /** The port on 127.0.0.1; it stays over a restart. */
  readonly port: number;
  readonly #launch: (port: number) => Promise<RedisProcess>;
  readonly #home: string;
  readonly #clock: RedisClock | undefined;
  #process: RedisProcess;

  private constructor(parts: {
    readonly port: number;
    readonly launch: (port: number) => Promise<RedisProcess>;
    readonly home: string;
    readonly clock: RedisClock | undefined;
    readonly process: RedisProcess;
  }) {
    this.port = parts.port;
    this.#launch = parts.launch;
    this.#home = parts.home;
    this.#clock = parts.clock;
    this.#process = parts.process;
  }

  /**
   * Resolves when Redis has answered a PING.
   * @throws Error with the output of Redis, or with what to do when it is not installed
   */
  static async start(options: RedisServerOptions = {}): Promise<RedisServer> {
    const home = await mkdtemp(join(tmpdir(), 'redis-'));
    const { dir = home, args = [] } = options;
    const clock = options.steppableClock ? new RedisClock(home) : undefined;
    const launch = async (port: number) =>
      RedisProcess.launch({
        args: ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', dir, ...args],
        home,
        environment: (await clock?.environment()) ?? {},
      });
    try {
      for (let attempt = 1; ; attempt++) {
        const port = options.port ?? (await freePort());
        try {
          return new RedisServer({ port, launch, home, clock, process: await launch(port) });
        } catch (error) {
          const portWasTaken = error instanceof Error && error.message.includes('Address already in use');
          if (!portWasTaken || options.port !== undefined || attempt === PORT_ATTEMPTS) throw error;
        }
      }
    } catch (error) {
      await rm(home, { recursive: true, force: true });
      throw error;
    }
  }

  /** Such as `redis://127.0.0.1:6379`. */
  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** The process id of the Redis that was started last. */
  get pid(): number {
    return this.#process.pid;
  }

  /** False after `stop()` or `kill()`, or when Redis has ended by itself; true again after `restart()`. */
  get isRunning(): boolean {
    return this.#process.isRunning;
  }

  /** Ends Redis the orderly way and removes its folder. Resolves when the process has gone; may be called again. */
  async stop(): Promise<void> {
    await this.#process.terminate();
    await rm(this.#home, { recursive: true, force: true });
  }

  /** Kills Redis with no chance to save anything. Resolves when the process has gone. */
  async kill(): Promise<void> {
    await this.#process.kill();
  }

  /** Starts Redis again on the same port and folder; one that is running is ended first, the orderly way. */
  async restart(): Promise<void> {
    await this.#process.terminate();
    await mkdir(this.#home, { recursive: true });
    this.#process = await this.#launch(this.port);
  }

  /** Suspends Redis: connections stay open, the system even accepts new ones, but nothing is answered. */
  freeze(): void {
    this.#process.signal('SIGSTOP');
  }

  /** Lets a frozen Redis go on. */
  thaw(): void {
    this.#process.signal('SIGCONT');
  }

  /**
   * Sets the clock by which Redis tells the time, ahead or back by so many milliseconds; it stays so over a restart. What
   * Redis measures by its other clock, such as how often it does what, goes on as before.
   * @throws Error when Redis was not started with `steppableClock`
   */
  async stepClock(ms: number): Promise<void> {
    await this.#steppableClock.step(ms);
  }

  /**
   * Has the clock by which Redis tells the time stand still, also over a restart: it moves when it is stepped, and no
   * command is executed later than another one because of the time that went by between them.
   * @throws Error when Redis was not started with `steppableClock`
   */
  async stopClock(): Promise<void> {
    await this.#steppableClock.stop();
  }

  get #steppableClock(): RedisClock {
    if (!this.#clock) throw new Error('Only a RedisServer that was started with `steppableClock` has such a clock');
    return this.#clock;
  }
}
