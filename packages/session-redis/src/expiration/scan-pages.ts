/** One call of a scan, such as SCAN or SSCAN. */
export type ReadPage<Item = string> = (cursor: string) => Promise<[cursor: string, items: Item[]]>;

/** The pages of a scan, from a cursor to the last one. */
export async function* pages<Item = string>(read: ReadPage<Item>, from = '0'): AsyncIterable<Item[]> {
  let cursor = from;
  do {
    const [next, items] = await read(cursor);
    yield items;
    cursor = next;
  } while (cursor !== '0');
}
