import { setTimeout as delay } from 'node:timers/promises';
import { inspect } from 'node:util';

/** The limits of `eventually()`. */
export interface EventuallyOptions {
  /** Milliseconds until it gives up. Time in which the process was suspended does not count. @default 20000 */
  readonly timeout?: number | undefined;
  /** Milliseconds between two checks. @default 20 */
  readonly interval?: number | undefined;
}

// One turn counts at most this much: while the process is suspended, nothing that it waits for can happen.
const LONGEST_TURN = 2000;

/**
 * Repeats `check` until it neither throws nor returns false, null, 0 or '', and resolves to the value it returned.
 * Undefined is a success, so that you can pass a block of expectations. Rejects with the error of the last check.
 */
export async function eventually<T>(check: () => T | Promise<T>, options: EventuallyOptions = {}): Promise<T> {
  const { timeout = 20_000, interval = 20 } = options;
  for (let left = timeout; ;) {
    const begin = Date.now();
    let failure: unknown;
    try {
      const result = await check();
      if (result || result === undefined) return result;
      failure = new Error(`Still ${inspect(result)} after ${timeout} ms`);
    } catch (error) {
      failure = error;
    }
    if (left <= 0) throw failure;
    await delay(interval);
    left -= Math.min(Date.now() - begin, Math.max(interval, LONGEST_TURN));
  }
}
