import type { RequestSession } from '@nest-session/core/internal';
import type { Callback } from '../bag/session-bag.js';
import { callSafely, reportUntold } from './call-safely.js';

/** The callbacks that a request has passed to its session. Its response waits until each was called. */
export class SessionCallbacks {
  readonly #response: RequestSession['response'];
  readonly #left = new Set<Promise<void>>();

  constructor({ response }: RequestSession) {
    this.#response = response;
  }

  /** Resolves when those were called that have not been yet; undefined when there are none. */
  get left(): Promise<unknown> | undefined {
    return this.#left.size > 0 ? Promise.all(this.#left) : undefined;
  }

  /** Calls back with the error of a result, or without an argument. */
  add(result: Promise<unknown>, callback: Callback): void {
    const call = (...args: Parameters<Callback>) => {
      // First, because the response that it sends would wait for it.
      this.#left.delete(called);
      callSafely(
        () => callback(...args),
        (error) => this.#fail(error),
      );
    };
    const called = result.then(
      () => call(),
      (error: unknown) => call(error),
    );
    this.#left.add(called);
  }

  #fail(error: unknown): void {
    if (!this.#response.fail?.(error)) reportUntold(error);
  }
}
