/** The number of rounds of each race. */
export const ROUNDS = 12;

/**
 * Runs two steps at once and resolves to both results. From round to round they take turns to begin, and the second one
 * begins later: so it meets the first in each of its parts, in memory and behind a network.
 */
export async function atOnce<A, B>(round: number, one: () => Promise<A>, two: () => Promise<B>): Promise<[A, B]> {
  const pause = Math.floor(round / 2);
  if (round % 2 === 0) {
    const first = begun(one);
    await passed(pause);
    return Promise.all([first, two()]);
  }
  const first = begun(two);
  await passed(pause);
  return Promise.all([one(), first]);
}

/** Keeps a failure from being reported as an unhandled rejection before the race awaits it. */
function begun<T>(step: () => Promise<T>): Promise<T> {
  const result = step();
  result.catch(() => undefined);
  return result;
}

async function passed(pause: number): Promise<void> {
  for (let i = 0; i < Math.min(pause, 3) * 3; i++) await Promise.resolve();
  for (let i = 3; i < pause; i++) await new Promise((resolve) => setImmediate(resolve));
}
