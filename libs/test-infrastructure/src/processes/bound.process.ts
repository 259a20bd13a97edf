import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { eventually } from '@nest-session/testing';

// Runs a program until the standard input ends, which also happens when this process is killed.
const UNTIL_INPUT_ENDS = `
  exec 3<&0
  "$@" 3<&- & program=$!
  { read -r _ <&3; kill -9 $program; } & reader=$!
  wait $program; code=$?
  kill $reader 2>/dev/null
  exit $code
`;

/** A process of any program, with what it has printed. It ends with this process, however that ends. */
export class BoundProcess {
  readonly #shell: ChildProcess;
  readonly #exit: Promise<unknown>;
  #output = '';

  private constructor(command: readonly string[], env: NodeJS.ProcessEnv) {
    this.#shell = spawn('/bin/sh', ['-c', UNTIL_INPUT_ENDS, 'sh', ...command], {
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#exit = once(this.#shell, 'close');
    for (const stream of [this.#shell.stdout, this.#shell.stderr]) {
      stream!.setEncoding('utf8').on('data', (text) => (this.#output += text));
    }
  }

  static start(command: readonly string[], env: NodeJS.ProcessEnv = {}): BoundProcess {
    return new BoundProcess(command, env);
  }

  /** What it has printed until now, on both streams. */
  get output(): string {
    return this.#output;
  }

  /**
   * Resolves to the first group of a pattern, as soon as it has printed that.
   * @throws Error with what it has printed, when it has ended or takes longer than two minutes
   */
  async printed(pattern: RegExp): Promise<string> {
    const read = () => {
      const [, found] = pattern.exec(this.#output) ?? [];
      if (found !== undefined) return found;
      return this.#shell.exitCode === null ? false : 'ended';
    };
    const found = await eventually(read, { timeout: 120_000 }).catch(() => 'ended');
    if (found !== 'ended') return found as string;
    await this.stop();
    throw new Error(`It never printed ${pattern}, but:\n${this.#output}`);
  }

  async stop(): Promise<void> {
    this.#shell.stdin!.end();
    await this.#exit;
  }
}
