import type { Redis } from 'ioredis';
import { nodeWith } from '../connection/node-with.js';
import { pages } from '../expiration/scan-pages.js';
import type { SessionKeys } from '../keys/session-keys.js';
import type { SessionPartitions } from '../keys/session-partitions.js';

const SCANNED_PER_CALL = 500;
// No namespace has a question mark, so these keys are nobody else's. As a pattern it matches itself.
const ASIDE = 'moving?:';

/** A pattern of the names of keys that are aside. */
export const ALL_ASIDE = `${ASIDE}*`;

/** The names of the keys of events. Exact, because another namespace can begin with this one: `app` and `app:events`. */
const OF_EVENTS =
  /^events(?::(?:dead(?::(?:index|sizes|lost|unreported))?|(?:failing|retries):[^]+|handlers|wanted(?::broadcast:[\w-]+)?|trimmed|thinned|dropped))?$/;

/** A key of a partition, and what comes after the prefix in it. */
export interface ScannedKey {
  readonly key: string;
  readonly partition: SessionKeys;
  readonly name: string;
}

export function isOfEvents({ name }: ScannedKey): boolean {
  return OF_EVENTS.test(name);
}

/** The name of a key of events until everything is copied: in the same slot as the key. */
export function aside({ prefix }: Pick<SessionKeys, 'prefix'>, key: string): string {
  return prefix + ASIDE + key.slice(prefix.length);
}

export function isAside({ name }: ScannedKey): boolean {
  return name.startsWith(ASIDE) && OF_EVENTS.test(name.slice(ASIDE.length));
}

/** The name that a key that is aside is to have. */
export function inPlace({ partition, name }: ScannedKey): string {
  return partition.prefix + name.slice(ASIDE.length);
}

/** The keys of all partitions whose names match a pattern, page by page: those that are there the whole time at least once. */
export async function* scannedKeys(
  client: Redis,
  { namespace, all, any }: SessionPartitions,
  pattern: string,
): AsyncIterable<ScannedKey[]> {
  const partitions = new Map(all.map((keys) => [keys.prefix, keys]));
  const options = ['MATCH', `${any.prefix}${pattern}`, 'COUNT', SCANNED_PER_CALL] as const;
  const found = (key: string): ScannedKey[] => {
    // With the keys of one partition, the pattern matches those of others.
    const [tag = ''] = /^\{[^}]*\}:/.exec(key.slice(namespace.length + 1)) ?? [];
    const prefix = `${namespace}:${tag}`;
    const partition = partitions.get(prefix);
    return partition ? [{ key, partition, name: key.slice(prefix.length) }] : [];
  };
  // Fails while one of the nodes is missing, whose keys would be passed over.
  for (const node of new Set(all.map(({ prefix }) => nodeWith(client, prefix)))) {
    for await (const keys of pages((cursor) => node.scan(cursor, ...options))) yield keys.flatMap(found);
  }
}

/** Runs something for many items, some of them at a time. */
export async function inBatches<T>(
  items: readonly T[],
  size: number,
  act: (item: T) => Promise<unknown>,
): Promise<void> {
  for (let i = 0; i < items.length; i += size) await Promise.all(items.slice(i, i + size).map(act));
}
