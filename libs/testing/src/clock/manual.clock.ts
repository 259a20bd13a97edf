/** A clock for the in-memory store that moves only when told to. */
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

  /** Moves the clock by so many milliseconds; back when negative. Resolves nothing and runs nothing. */
  advance(milliseconds: number): void {
    this.#now += milliseconds;
  }
}
