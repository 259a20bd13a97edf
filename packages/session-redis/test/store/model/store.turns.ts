import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Scheduler } from 'fast-check';

/** Whether a step runs, which may consist of further calls: they are not steps of their own. */
const running = new AsyncLocalStorage<true>();

/** The callers that were started together. */
const company = new AsyncLocalStorage<symbol>();

/**
 * Takes the steps of a store one by one, in the order of a scheduler, although many callers wait. A step begins only
 * after everything that follows from the previous one.
 */
export class Turns {
  #scheduler: Scheduler | undefined;
  #company: symbol | undefined;
  #step: Promise<unknown> | undefined;
  #onStep: (() => void) | undefined;

  /** Runs the started callers turn by turn until all finish or one fails, with `afterwards` after each step. */
  async order(scheduler: Scheduler, start: () => Promise<unknown>[], afterwards: () => Promise<void>): Promise<void> {
    this.#scheduler = scheduler;
    this.#company = Symbol('company');
    const failures: unknown[] = [];
    const all = company.run(this.#company, start).map((each) => each.catch((error: unknown) => failures.push(error)));
    try {
      await this.#untilAllWait();
      let isOver = false;
      const end = Promise.all(all).then(() => (isOver = true));
      while (!isOver) {
        await scheduler.waitAll(async (release) => {
          await release();
          await this.#untilAllWait();
          if (failures.length === 0) await afterwards();
          if (failures.length > 0) throw failures[0];
        });
        // A caller may pause before its next step: the update of an attribute that another instance has changed.
        await Promise.race([end, new Promise<void>((resolve) => (this.#onStep = resolve))]);
      }
      if (failures.length > 0) throw failures[0];
    } finally {
      this.#scheduler = undefined;
      this.#company = undefined;
    }
  }

  /** Takes a step when it is its turn: never, when one of those with whom the caller was started has failed. */
  async take<T>(label: string, step: () => T | Promise<T>): Promise<T> {
    if (running.getStore()) return step();
    // It paused meanwhile, and others have been started since.
    const isLeft = company.getStore() !== undefined && company.getStore() !== this.#company;
    if (isLeft) return new Promise(() => undefined);
    const turn = this.#scheduler?.schedule(Promise.resolve(), label);
    this.#onStep?.();
    await turn;
    const taken = Promise.resolve(running.run(true, step));
    const ended = taken.then(
      () => undefined,
      () => undefined,
    );
    this.#step = ended.finally(() => (this.#step = undefined));
    return taken;
  }

  /** The same object, but each call of a method is a step that waits for its turn. */
  taking<T extends object>(target: T): T {
    return intercepted(target, (name, call) => this.take(name, call));
  }

  /** Waits until the step and all that follows from it are done. */
  async #untilAllWait(): Promise<void> {
    await nextTurn();
    while (this.#step) {
      await this.#step;
      await nextTurn();
    }
  }
}

/** The same object, but `around` makes each call of a method. */
export function intercepted<T extends object>(target: T, around: (name: string, call: () => unknown) => unknown): T {
  return new Proxy(target, {
    get: (_target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => around(String(name), () => Reflect.apply(value, target, args) as unknown);
    },
  });
}
