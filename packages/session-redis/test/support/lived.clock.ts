const TICK = 20;

/**
 * The milliseconds in which this process has run. Late ticks under load count in full; of a time in which the process
 * stalled, only one step counts.
 */
export class LivedClock {
  /** Milliseconds: longer than a turn of the event loop under load. */
  static readonly LONGEST_STEP = 250;

  #lived = 0;
  #last = 0;
  #timer: NodeJS.Timeout | undefined;

  start(): void {
    this.#last = performance.now();
    this.#timer = setInterval(() => this.#step(), TICK);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  get now(): number {
    this.#step();
    return this.#lived;
  }

  #step(): void {
    const now = performance.now();
    this.#lived += Math.min(now - this.#last, LivedClock.LONGEST_STEP);
    this.#last = now;
  }
}
