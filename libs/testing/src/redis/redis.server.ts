import { mkdtempSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../net/free-port.js';
import { RedisProcess } from './redis.process.js';

/** The options of a private Redis. */
export interface RedisServerOptions {
  /** Further arguments of redis-server, such as `['--maxmemory', '10mb']`. They override those of `RedisServer`. */
  readonly args?: readonly string[] | undefined;
  /** @default a free port */
  readonly port?: number | undefined;
  /** The folder for the files of Redis. `stop()` does not remove it. @default a new folder, which `stop()` removes */
  readonly dir?: string | undefined;
}

// Another process, such as a test file that runs at the same time, may take a free port before Redis listens on it.
const PORT_ATTEMPTS = 10;

/**
 * A real redis-server for one test or test file. It listens on 127.0.0.1, persists nothing unless `args` say so, and
 * ends with the process that started it, even if that process is killed. It runs the program that the environment
 * variable `REDIS_SERVER` names, by default `redis-server` on the PATH.
 */
export class RedisServer {
  /** The folder for the socket of this server, and for its files unless `dir` names another folder. */
  protected readonly home: string;
  readonly #options: RedisServerOptions;
  #port = 0;
  #process!: RedisProcess;

  protected constructor(options: RedisServerOptions = {}) {
    this.#options = options;
    this.home = mkdtempSync(join(tmpdir(), 'redis-'));
  }

  /**
   * Starts redis-server, and resolves when it replies to a PING.
   * @throws Error with the output of redis-server if it cannot start, or with what to install if there is no
   *   redis-server
   */
  static async start(options?: RedisServerOptions): Promise<RedisServer> {
    const server = new this(options);
    try {
      await server.#start();
      return server;
    } catch (error) {
      await rm(server.home, { recursive: true, force: true });
      throw error;
    }
  }

  /** The TCP port of Redis. */
  get port(): number {
    return this.#port;
  }

  /** `redis://127.0.0.1:<port>` */
  get url(): string {
    return `redis://127.0.0.1:${this.#port}`;
  }

  /** The process id of the redis-server that was started last. */
  get pid(): number {
    return this.#process.pid;
  }

  /** Whether Redis runs. False after `stop()`, `kill()` or an end of its own, and true again after `restart()`. */
  get isRunning(): boolean {
    return this.#process.isRunning;
  }

  /** Shuts Redis down and removes its folder. Resolves when the process has ended. You may call it again. */
  async stop(): Promise<void> {
    await this.#process.terminate();
    await rm(this.home, { recursive: true, force: true });
  }

  /** Kills Redis, so that it cannot save anything. Resolves when the process has ended. */
  async kill(): Promise<void> {
    await this.#process.kill();
  }

  /** Starts Redis again on the same port and folder. If Redis still runs, it is shut down first. */
  async restart(): Promise<void> {
    await this.#process.terminate();
    this.#process = await this.#launch();
  }

  /** Suspends Redis. Connections stay open, and the system even accepts new ones, but no command gets a reply. */
  freeze(): void {
    this.#process.signal('SIGSTOP');
  }

  /** Resumes a frozen Redis. */
  thaw(): void {
    this.#process.signal('SIGCONT');
  }

  /** Returns additional environment variables of redis-server. Called at each start. Subclasses may override it. */
  protected async environment(): Promise<Readonly<Record<string, string>>> {
    return {};
  }

  async #start(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      this.#port = this.#options.port ?? (await freePort());
      try {
        this.#process = await this.#launch();
        return;
      } catch (error) {
        const portWasTaken = error instanceof Error && error.message.includes('Address already in use');
        if (!portWasTaken || this.#options.port !== undefined || attempt === PORT_ATTEMPTS) throw error;
      }
    }
  }

  async #launch(): Promise<RedisProcess> {
    await mkdir(this.home, { recursive: true });
    const { dir = this.home, args = [] } = this.#options;
    const network = ['--port', `${this.#port}`, '--bind', '127.0.0.1'];
    const noPersistence = ['--save', '', '--appendonly', 'no'];
    return RedisProcess.launch({
      args: [...network, ...noPersistence, '--dir', dir, ...args],
      home: this.home,
      environment: await this.environment(),
    });
  }
}
