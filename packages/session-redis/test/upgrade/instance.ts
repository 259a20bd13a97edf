import { eventually } from '@nest-session/testing';
import { WorkerProcess } from '../support/worker.process.js';

/** An array with the value, or why it failed: then it may have happened or not. */
export type Answer = readonly [unknown] | string;

/** An instance of an application, of one of two versions. */
export class Instance {
  #number = 0;
  #isStopping = false;

  private constructor(private readonly worker: WorkerProcess) {}

  static async start(program: string, environment: Record<string, string>): Promise<Instance> {
    return new Instance(await WorkerProcess.start(environment, { program, ready: /^ready / }));
  }

  /** Where its packages stand. */
  get packages(): string {
    return this.worker.lines.find((line) => line.startsWith('ready '))!;
  }

  /** Resolves to the answers; to failures when it is killed meanwhile. */
  async perform(operations: readonly unknown[]): Promise<Answer[]> {
    const number = (this.#number += 1);
    this.worker.tell(JSON.stringify({ number, operations }));
    const begin = `answers {"number":${number},`;
    let line: string | undefined;
    await eventually(
      () => {
        line = this.worker.lines.find((each) => each.startsWith(begin));
        if (line === undefined && !this.#isStopping) throw new Error('It has not answered yet');
      },
      { timeout: 120_000, interval: 5 },
    );
    if (line === undefined) return operations.map(() => 'killed');
    return (JSON.parse(line.slice('answers '.length)) as { answers: Answer[] }).answers;
  }

  async stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    if (signal === 'SIGKILL') this.#isStopping = true;
    await this.worker.end(signal);
  }
}
