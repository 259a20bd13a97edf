/** How often a race is run. */
export const ROUNDS = 12;

/**
 * What two steps answer, of which now the one and now the other is begun first, and the second ever a little later: so it
 * meets the first one in each of its parts, which are short in memory and longer behind a network.
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

/** Its failure is that of the race, and not one that nobody waits for. */
function begun<T>(step: () => Promise<T>): Promise<T> {
  const answer = step();
  answer.catch(() => undefined);
  return answer;
}

async function passed(pause: number): Promise<void> {
  for (let i = 0; i < Math.min(pause, 3) * 3; i++) await Promise.resolve();
  for (let i = 3; i < pause; i++) await new Promise((resolve) => setImmediate(resolve));
}
