import type { Redis } from 'ioredis';
import { nodeWith, type PartitionKeys, type Partitions } from '@nest-session/redis-events/internal';
import { batchesOf, pages, type SessionKeys } from '@nest-session/redis/internal';

const SCANNED_PER_CALL = 500;
// No namespace contains a question mark, so these keys belong to nobody else. As a pattern, the text matches itself.
const ASIDE = 'moving?:';

export const ALL_ASIDE = `${ASIDE}*`;

/** Exactly: another namespace can begin with this one, as `app:events` with `app`. */
const OF_EVENTS =
  /^events(?::(?:dead(?::(?:index|sizes|lost|unreported))?|(?:failing|retries):[^]+|handlers|wanted(?::broadcast:[\w-]+)?|trimmed|thinned|dropped))?$/;

export interface ScannedKey<Keys extends PartitionKeys = SessionKeys> {
  readonly key: string;
  readonly partition: Keys;
  readonly name: string;
}

export function isOfEvents({ name }: ScannedKey): boolean {
  return OF_EVENTS.test(name);
}

/** The temporary name of a key of events until everything is copied. It is in the same slot as the key. */
export function aside({ prefix }: Pick<SessionKeys, 'prefix'>, key: string): string {
  return prefix + ASIDE + key.slice(prefix.length);
}

export function isAside({ name }: ScannedKey): boolean {
  return name.startsWith(ASIDE) && OF_EVENTS.test(name.slice(ASIDE.length));
}

export function inPlace({ partition, name }: ScannedKey): string {
  return partition.prefix + name.slice(ASIDE.length);
}

/** Yields the keys of all partitions that match a pattern, page by page. A key that stays comes at least once. */
export async function* scannedKeys<Keys extends PartitionKeys>(
  client: Redis,
  { namespace, all, any }: Pick<Partitions<Keys>, 'namespace' | 'all' | 'any'>,
  pattern: string,
): AsyncIterable<ScannedKey<Keys>[]> {
  const partitions = new Map(all.map((keys) => [keys.prefix, keys]));
  const options = ['MATCH', `${any.prefix}${pattern}`, 'COUNT', SCANNED_PER_CALL] as const;
  const found = (key: string): ScannedKey<Keys>[] => {
    // The pattern for a single partition also matches keys of other partitions.
    const [tag = ''] = /^\{[^}]*\}:/.exec(key.slice(namespace.length + 1)) ?? [];
    const prefix = `${namespace}:${tag}`;
    const partition = partitions.get(prefix);
    return partition ? [{ key, partition, name: key.slice(prefix.length) }] : [];
  };
  // This fails while a node is missing, because its keys would be skipped.
  for (const node of new Set(all.map(({ prefix }) => nodeWith(client, prefix)))) {
    for await (const keys of pages((cursor) => node.scan(cursor, ...options))) yield keys.flatMap(found);
  }
}

export async function inBatches<T>(
  items: readonly T[],
  size: number,
  act: (item: T) => Promise<unknown>,
): Promise<void> {
  for (const some of batchesOf(items, size)) await Promise.all(some.map(act));
}

/** Yields pages of a stream, or of what is pending there, each of entries that begin with their position. */
export async function* streamPages<Entry extends readonly [position: string | Buffer, ...unknown[]]>(
  read: (from: string) => Promise<Entry[]>,
): AsyncIterable<Entry[]> {
  for (let page = await read('-'); page.length > 0; page = await read(`(${String(page.at(-1)![0])}`)) yield page;
}
