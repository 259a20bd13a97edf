/** A clock for a store under test, which moves only when you advance it. */
export class ManualClock {
  #now: number;

  /** @param start epoch milliseconds */
  constructor(start: number = Date.UTC(2026, 0, 1)) {
    this.#now = start;
  }

  /** Epoch milliseconds. */
  now(): number {
    return this.#now;
  }

  /** Moves the clock by this many milliseconds, or back if they are negative. It runs no timers. */
  advance(milliseconds: number): void {
    this.#now += milliseconds;
  }
}
