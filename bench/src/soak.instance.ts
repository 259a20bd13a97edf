import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Calls } from './soak.clients.js';

const MAIN = fileURLToPath(new URL('./soak.main.js', import.meta.url));

/** What an instance answers. */
export interface Answers {
  /** Its clients have made the calls of a minute. */
  readonly spend: Calls;
  /** In bytes, after a garbage collection. */
  readonly memory: { readonly heap: number; readonly resident: number };
  /** What the store knows of itself; the same for every instance. */
  readonly store: {
    readonly sessions: number;
    readonly deadlines: number;
    /** Events that are not handled yet. */
    readonly lag: number;
    readonly deadLetters: number;
    /** Events that were removed before they were handled. */
    readonly dropped: number;
  };
}

export interface Question {
  readonly word: keyof Answers;
  readonly minute: number;
}

/** An instance in a process of its own. It answers one question at a time. */
export class SoakInstance {
  readonly #ended: Promise<unknown>;
  /** Rejects. */
  readonly #died: Promise<never>;

  private constructor(private readonly process: ChildProcess) {
    this.#ended = once(process, 'exit');
    this.#died = this.#ended.then(() => Promise.reject(new Error('An instance has ended')));
    this.#died.catch(() => undefined);
  }

  static async start(name: string, ...args: readonly (string | number)[]): Promise<SoakInstance> {
    const child = fork(MAIN, [name, ...args.map(String)], { execArgv: ['--expose-gc'] });
    const instance = new SoakInstance(child);
    await instance.#next();
    return instance;
  }

  async ask<Word extends keyof Answers>(word: Word, minute = 0): Promise<Answers[Word]> {
    this.process.send({ word, minute } satisfies Question);
    return (await this.#next()) as Answers[Word];
  }

  /** It finishes what it does, as in a deployment. */
  async finish(): Promise<void> {
    this.process.kill('SIGTERM');
    await this.#ended;
  }

  async #next(): Promise<unknown> {
    const [message] = await Promise.race([once(this.process, 'message') as Promise<[unknown]>, this.#died]);
    return message;
  }
}
