import { jest } from '@jest/globals';

/**
 * A monotonic clock that only the test moves, until `jest.restoreAllMocks()`: what is to happen within a time does, or
 * never. Timers still run by the clock of the machine.
 */
export class HandClock {
  #now = performance.now();

  constructor() {
    jest.spyOn(performance, 'now').mockImplementation(() => this.#now);
  }

  pass(milliseconds: number): void {
    this.#now += milliseconds;
  }
}
