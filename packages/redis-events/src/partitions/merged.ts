/** The items of several sources, each of which is in order, in one order. Of equal ones, the first source is first. */
export async function* merged<T>(
  sources: readonly AsyncGenerator<T, void>[],
  compare: (one: T, other: T) => number,
): AsyncGenerator<T, void> {
  const nextOf = async (source: AsyncGenerator<T, void>) => (await source.next()).value as T | undefined;
  const heads = await Promise.all(sources.map(nextOf));
  for (;;) {
    let first = -1;
    for (const [i, head] of heads.entries())
      if (head !== undefined && (first < 0 || compare(head, heads[first]!) < 0)) first = i;
    if (first < 0) return;
    yield heads[first]!;
    heads[first] = await nextOf(sources[first]!);
  }
}
