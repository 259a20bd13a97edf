import { isWellFormedIdOrToken } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import { nodeWith } from '@nest-session/redis-events/internal';
import type { SessionKeys } from '../keys/session-keys.js';
import { pages } from './scan-pages.js';

const SCANNED_PER_CALL = 1000;

/**
 * The ids of the sessions whose session hashes name a bucket; null: none, as those in the sorted set. A scan of all
 * keys of the node: only for when a stray key has taken the place of the bucket, or of the sorted set.
 */
export async function* sessionsRecordedIn(
  client: Redis,
  partition: SessionKeys,
  bucket: string | null,
): AsyncIterable<string[]> {
  const prefix = partition.session('');
  const all = ['MATCH', `${prefix}*`, 'COUNT', SCANNED_PER_CALL, 'TYPE', 'hash'] as const;
  const scan = (cursor: string) => nodeWith(client, prefix).scan(cursor, ...all);
  for await (const keys of pages(scan)) {
    // Another namespace may begin with this one and `sessions`.
    const ids = keys.map((key) => key.slice(prefix.length)).filter(isWellFormedIdOrToken);
    const recorded = await Promise.all(ids.map((id) => client.hget(partition.session(id), 'bucket')));
    yield ids.filter((_, i) => recorded[i] === bucket);
  }
}
