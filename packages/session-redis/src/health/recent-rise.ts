const HOUR = 3_600_000;

/** Tells for an hour that a number has risen. */
export class RecentRise {
  #last: number | undefined;
  /** Monotonic time. */
  #risenAt = -Infinity;

  /** Notes the number, and returns whether it has risen within the last hour. The first one is no rise. */
  note(count: number): boolean {
    const now = performance.now();
    if (this.#last !== undefined && count > this.#last) this.#risenAt = now;
    this.#last = count;
    return now - this.#risenAt < HOUR;
  }
}
