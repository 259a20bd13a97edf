import type { Redis } from 'ioredis';
import { nodeWith } from '../connection/node-with.js';
import { pages } from '../expiration/scan-pages.js';
import type { SessionKeys } from '../keys/session-keys.js';
import type { SessionPartitions } from '../keys/session-partitions.js';

const SCANNED_PER_CALL = 500;
const MOVING = ':moving:';

/** A key of a partition, and what comes after the prefix in it. */
export interface ScannedKey {
  readonly key: string;
  readonly partition: SessionKeys;
  readonly name: string;
}

/** The name of a key until everything is copied: in the same slot as the key. */
export function aside({ prefix }: SessionKeys, key: string): string {
  return prefix.slice(0, -1) + MOVING + key.slice(prefix.length);
}

/** The name that a key of `aside()` is to have. */
export function inPlace(key: string): string {
  return key.replace(MOVING, ':');
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
