import { setTimeout as delay } from 'node:timers/promises';

/** How long and how often `eventually()` checks. */
export interface EventuallyOptions {
  /** Milliseconds, of which those do not count that the process itself stood still. @default 20000 */
  readonly timeout?: number | undefined;
  /** Milliseconds between two checks. @default 20 */
  readonly interval?: number | undefined;
}

// A process that stood still has given what it waits for no time: one turn counts for no more than this.
const LONGEST_TURN = 2000;

/**
 * Repeats `check` until it neither throws nor gives false, null, 0 or '', and resolves to what it gave. Undefined is
 * a success, so that a block of expectations can be given. Rejects with what the last check threw.
 */
export async function eventually<T>(check: () => T | Promise<T>, options: EventuallyOptions = {}): Promise<T> {
  const { timeout = 20_000, interval = 20 } = options;
  for (let left = timeout; ;) {
    const begin = Date.now();
    let failure: unknown;
    try {
      const result = await check();
      if (result || result === undefined) return result;
      failure = new Error(`Still ${JSON.stringify(result)} after ${timeout} ms`);
    } catch (error) {
      failure = error;
    }
    if (left <= 0) throw failure;
    await delay(interval);
    left -= Math.min(Date.now() - begin, Math.max(interval, LONGEST_TURN));
  }
}
