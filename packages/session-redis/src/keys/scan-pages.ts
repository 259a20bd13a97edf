import { nodeWith } from '@nest-session/redis-events/internal';
import type { Redis } from 'ioredis';
import type { SessionKeys } from './session-keys.js';

const SCANNED_PER_CALL = 1000;

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

export function* batchesOf<Item>(all: readonly Item[], size: number): Iterable<readonly Item[]> {
  for (let i = 0; i < all.length; i += size) yield all.slice(i, i + size);
}

/** The ids of all session hashes of a partition, by a scan of its node. `paced`: makes a call when it may be made. */
export async function* storedSessionIds(
  client: Redis,
  keys: SessionKeys,
  paced = <T>(call: () => Promise<T>) => call(),
): AsyncIterable<string[]> {
  const prefix = keys.session('');
  const all = ['MATCH', `${prefix}*`, 'COUNT', SCANNED_PER_CALL, 'TYPE', 'hash'] as const;
  const scan = (cursor: string) => paced(() => nodeWith(client, prefix).scan(cursor, ...all));
  for await (const found of pages(scan)) yield found.map((key) => key.slice(prefix.length));
}
