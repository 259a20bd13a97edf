import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { eventually, type EventuallyOptions } from '@nest-session/testing';

const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url));

/** Milliseconds; several processes that load an application at once take long. */
const START_TIMEOUT = 60_000;

interface WorkerOptions {
  /** @default worker.mjs */
  readonly program?: string;
  /** The line that it prints when it is ready. */
  readonly ready?: RegExp;
  readonly nodeArguments?: readonly string[];
}

/** An application in a process of its own. */
export class WorkerProcess {
  /** What it has printed, without empty lines. */
  readonly lines: string[] = [];

  private constructor(private readonly child: ChildProcess) {
    // Each by itself: a line of one may come in the middle of a line of the other.
    for (const output of [child.stdout!, child.stderr!]) {
      createInterface({ input: output }).on('line', (line) => line !== '' && this.lines.push(line));
    }
  }

  static async start(environment: Record<string, string>, options: WorkerOptions = {}): Promise<WorkerProcess> {
    const { program = WORKER, ready = /^ready$/, nodeArguments = [] } = options;
    const preloaded = process.env['PRELOADED_BY_WORKERS'];
    const imports = preloaded === undefined ? [] : ['--import', preloaded];
    const child = spawn(process.execPath, [...imports, ...nodeArguments, program], {
      env: { ...process.env, NODE_OPTIONS: '', ...environment },
    });
    const worker = new WorkerProcess(child);
    await worker.saysLine(ready, { timeout: START_TIMEOUT });
    return worker;
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** Writes a line to its standard input. */
  tell(line: string): void {
    this.child.stdin!.write(`${line}\n`);
  }

  /** Resolves when a line of its output matches. */
  async saysLine(pattern: RegExp, options?: EventuallyOptions): Promise<void> {
    await eventually(() => {
      if (this.child.exitCode !== null) throw new Error(`The worker ended: ${this.lines.join('\n')}`);
      if (!this.lines.some((line) => pattern.test(line)))
        throw new Error(`No ${String(pattern)} in: ${this.lines.join('\n')}`);
    }, options);
  }

  /** Resolves when the process has gone. */
  async end(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill(signal);
    await once(this.child, 'exit');
  }
}
