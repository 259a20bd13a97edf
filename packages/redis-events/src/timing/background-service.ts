import { setTimeout as pause } from 'node:timers/promises';
import type { FailureLog } from '../logging/failure.log.js';

export interface BackgroundService {
  /** Begins. A promise rejects when the application must not start, and resolves when it may go on. */
  start(): Promise<void> | void;
  /** Begins nothing more. Resolves when what was begun has ended. Harmless before `start()` and twice. */
  stop(): Promise<void> | void;
}

/** Milliseconds between two attempts at background work that has failed. No longer pause outlives a fault of Redis. */
export const RETRY = 500;

/** Repeats a pass, which resolves to whether it has shown that what failed before works again. */
export async function repeatPasses(
  pass: () => Promise<boolean>,
  signal: AbortSignal,
  failures: FailureLog,
): Promise<void> {
  while (!signal.aborted) {
    try {
      if (await pass()) failures.succeeded();
    } catch (error) {
      if (signal.aborted) return;
      failures.failed(error);
      await pause(RETRY, undefined, { signal }).catch(() => undefined);
    }
  }
}

/** Whether the work has succeeded or failed within `ms` milliseconds. Never rejects. */
export async function settledWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const done = new AbortController();
  const finished = work.then(
    () => done.abort(),
    () => done.abort(),
  );
  await Promise.race([finished, pause(ms, undefined, { signal: done.signal }).catch(() => undefined)]);
  return done.signal.aborted;
}
