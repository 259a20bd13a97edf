/** One call of a scan, such as SCAN or SSCAN. */
export type ReadPage = (cursor: string) => Promise<[cursor: string, items: string[]]>;

/** The pages of a scan, from a cursor to the last one. */
export async function* pages(read: ReadPage, from = '0'): AsyncIterable<string[]> {
  let cursor = from;
  do {
    const [next, items] = await read(cursor);
    yield items;
    cursor = next;
  } while (cursor !== '0');
}
