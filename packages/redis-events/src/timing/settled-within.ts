import { setTimeout as pause } from 'node:timers/promises';

/** Resolves to true when the work has succeeded or failed, and to false after `ms` milliseconds. Never rejects. */
export async function settledWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const done = new AbortController();
  const finished = work.then(
    () => done.abort(),
    () => done.abort(),
  );
  await Promise.race([finished, pause(ms, undefined, { signal: done.signal }).catch(() => undefined)]);
  return done.signal.aborted;
}
