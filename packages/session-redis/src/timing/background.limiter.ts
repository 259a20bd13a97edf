import { setTimeout as pause } from 'node:timers/promises';

// Milliseconds. Each call blocks Redis for less, so Redis serves requests for most of the time.
const PAUSE = 1;

/**
 * Keeps background work from crowding out requests, however much there is: its calls run one at a time, with a pause in
 * between. Each call must be small.
 */
export class BackgroundLimiter {
  #last: Promise<unknown> = Promise.resolve();
  /** Monotonic time. */
  #nextCall = 0;

  /** `pauseTime`: milliseconds. */
  constructor(private readonly pauseTime = PAUSE) {}

  /** Runs the calls in the order of `run()`. The pause delays the next call, not the result of this one. */
  run<T>(call: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(() => this.#take(call));
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #take<T>(call: () => Promise<T>): Promise<T> {
    const left = this.#nextCall - performance.now();
    if (left > 0) await pause(left);
    try {
      return await call();
    } finally {
      this.#nextCall = performance.now() + this.pauseTime;
    }
  }
}
