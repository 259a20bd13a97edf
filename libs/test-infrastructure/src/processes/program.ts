import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/** A process of Node.js, with what it has printed. */
export class Program {
  readonly child: ChildProcess;
  /** Resolves to the exit code and the signal. */
  readonly exit: Promise<unknown>;
  #output = '';

  private constructor(child: ChildProcess) {
    this.child = child;
    this.exit = once(child, 'close');
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text) => (this.#output += text));
  }

  static start(args: readonly string[], env: NodeJS.ProcessEnv = {}, cwd?: string): Program {
    const all = { ...process.env, ...env, NO_COLOR: '1', FORCE_COLOR: undefined };
    return new Program(spawn(process.execPath, args, { cwd, env: all, stdio: ['ignore', 'pipe', 'pipe'] }));
  }

  /** What it has printed until now, on both streams. */
  get output(): string {
    return this.#output;
  }
}
