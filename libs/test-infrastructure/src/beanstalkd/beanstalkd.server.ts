import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createConnection } from 'node:net';
import { eventually, freePort } from '@nest-session/testing';

// Prints the process id of beanstalkd, and runs it until the standard input ends. That also happens when this process
// is killed.
const UNTIL_INPUT_ENDS = '"$@" >/dev/null & echo $!; read -r _; kill -9 $!';

/**
 * A real beanstalkd on a free port of 127.0.0.1, without a log of its jobs: it forgets them when it ends. The program
 * is the environment variable `BEANSTALKD`, or else `beanstalkd` on the PATH.
 */
export class BeanstalkdServer {
  #shell!: ChildProcess;
  #pid = 0;

  private constructor(readonly port: number) {}

  static async start(): Promise<BeanstalkdServer> {
    const server = new BeanstalkdServer(await freePort());
    await server.start();
    return server;
  }

  /** The process id of the beanstalkd that was started last. */
  get pid(): number {
    return this.#pid;
  }

  /** Whether it was started and not killed since. */
  get isRunning(): boolean {
    return this.#shell.exitCode === null;
  }

  /** Starts it again, on the same port, without the jobs that it had. */
  async start(): Promise<void> {
    const program = process.env['BEANSTALKD'] ?? 'beanstalkd';
    const command = [program, '-l', '127.0.0.1', '-p', `${this.port}`];
    this.#shell = spawn('/bin/sh', ['-c', UNTIL_INPUT_ENDS, 'sh', ...command], {
      detached: true,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const [line] = (await once(this.#shell.stdout!, 'data')) as [Buffer];
    this.#pid = Number(line.toString());
    await eventually(() => this.#accepts());
  }

  /** Kills it. Resolves when the port is free. */
  async kill(): Promise<void> {
    if (!this.isRunning) return;
    this.#shell.stdin!.end();
    await once(this.#shell, 'exit');
    await eventually(async () => !(await this.#accepts()));
  }

  async #accepts(): Promise<boolean> {
    const socket = createConnection(this.port, '127.0.0.1');
    try {
      return await new Promise((resolve) => {
        socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      });
    } finally {
      socket.destroy();
    }
  }
}
