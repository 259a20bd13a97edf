import { setTimeout as pause } from 'node:timers/promises';

/** Resolves when the work is done, whether well or not: true; and after `ms` at the latest: false. */
export async function settledWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const done = new AbortController();
  const finished = work.then(
    () => done.abort(),
    () => done.abort(),
  );
  await Promise.race([finished, pause(ms, undefined, { signal: done.signal }).catch(() => undefined)]);
  return done.signal.aborted;
}
