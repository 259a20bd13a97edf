import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { eventually } from '../wait/eventually.js';

export interface RedisProcessOptions {
  readonly args: readonly string[];
  /** The folder for this Redis alone. */
  readonly home: string;
  /** Environment variables in addition to those of this process. */
  readonly environment: Readonly<Record<string, string>>;
}

const START_TIMEOUT = 20_000;
const TERM_TIMEOUT = 5_000;
const PING_INTERVAL = 10;
const OUTPUT_LIMIT = 8_192;

const running = new Set<RedisProcess>();

process.on('exit', () => {
  for (const redis of running) redis.signal('SIGKILL');
});

/** One run of redis-server. It ends with the process that launched it, even if that process is killed. */
export class RedisProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  #output = '';

  private constructor(child: ChildProcess) {
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output = (this.#output + text).slice(-OUTPUT_LIMIT);
      });
    }
    this.#exited = new Promise((resolve) => {
      child.once('error', () => resolve());
      // The output with the reason may arrive after 'exit', so wait for 'close'.
      child.once('close', () => resolve());
    });
  }

  /**
   * Resolves when Redis replies on a Unix socket in its own folder. On the port, another server could reply before this
   * one notices that the port is taken.
   */
  static async launch(options: RedisProcessOptions): Promise<RedisProcess> {
    const socketPath = join(options.home, 'redis.sock');
    const program = process.env['REDIS_SERVER'] ?? 'redis-server';
    // In its own process group, Redis does not end before its clients when you press Ctrl-C.
    const child = spawn(program, [...options.args, '--unixsocket', socketPath], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...options.environment },
    });
    const redis = new RedisProcess(child);
    try {
      await once(child, 'spawn');
    } catch (error) {
      throw new Error(
        `Cannot run ${program} (${(error as NodeJS.ErrnoException).code}): install Redis 7 or later ` +
          '(Debian and Ubuntu: apt-get install redis-server; macOS: brew install redis), ' +
          'or set REDIS_SERVER to the path of the program.',
        { cause: error },
      );
    }
    running.add(redis);
    const guardian = endWithParent(redis.pid, options.home);
    void redis.#exited.then(() => {
      running.delete(redis);
      guardian.kill('SIGKILL');
    });
    await redis.#untilAnswering(socketPath);
    return redis;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get isRunning(): boolean {
    return running.has(this);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Ends Redis with SIGTERM, and kills it if it does not end in time. */
  async terminate(): Promise<void> {
    if (!this.isRunning) return;
    const lastResort = setTimeout(() => this.signal('SIGKILL'), TERM_TIMEOUT);
    this.signal('SIGTERM');
    this.signal('SIGCONT');
    await this.#exited;
    clearTimeout(lastResort);
  }

  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.#exited;
  }

  async #untilAnswering(socketPath: string): Promise<void> {
    const isOver = async () => !this.isRunning || (await repliesToPing(socketPath));
    await eventually(isOver, { timeout: START_TIMEOUT, interval: PING_INTERVAL }).catch(async () => {
      await this.kill();
      throw new Error(`redis-server did not reply within ${START_TIMEOUT} ms:\n${this.#output}`);
    });
    if (!this.isRunning) throw new Error(`redis-server ended before it could be used:\n${this.#output}`);
  }
}

/**
 * Starts a process that kills `pid` and removes `folder` when this process ends. It notices that by the end of its
 * standard input. A handler for 'exit' would not run in a killed process, nor under Jest, which gives tests another
 * `process`.
 */
function endWithParent(pid: number, folder: string): ChildProcess {
  const guardian = spawn('/bin/sh', ['-c', 'read -r _; kill -9 "$1"; rm -rf "$2"', 'sh', `${pid}`, folder], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  guardian.on('error', () => {}).unref();
  return guardian;
}

/** Whether a ready Redis listens there. A Redis that requires a password is ready. One that is still loading is not. */
async function repliesToPing(socketPath: string): Promise<boolean> {
  const socket = createConnection(socketPath);
  socket.on('error', () => {});
  socket.write('PING\r\n');
  try {
    return await new Promise<boolean>((resolve) => {
      socket.once('data', (reply) => resolve(/^(\+PONG|-NOAUTH)/.test(reply.toString())));
      socket.once('close', () => resolve(false));
    });
  } finally {
    socket.destroy();
  }
}
