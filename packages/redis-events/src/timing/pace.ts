import { setTimeout as delay } from 'node:timers/promises';

/** Lets no more than so many things through in a second, on average. */
export class Pace {
  readonly #began = performance.now();
  #passed = 0;

  constructor(
    private readonly perSecond: number,
    readonly signal?: AbortSignal,
  ) {}

  /** How many have passed. */
  get passed(): number {
    return this.#passed;
  }

  /** Waits until so many more may pass. @throws the reason of the signal */
  async pass(count: number): Promise<void> {
    this.signal?.throwIfAborted();
    this.#passed += count;
    const ahead = this.#began + (this.#passed / this.perSecond) * 1000 - performance.now();
    // A timer is not more exact.
    if (ahead > 1) await delay(ahead, undefined, this.signal ? { signal: this.signal } : {});
  }
}
