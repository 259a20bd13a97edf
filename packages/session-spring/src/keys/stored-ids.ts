import type { Redis } from 'ioredis';
import { patternOf } from '@nest-session/redis-events/internal';
import { pages } from '@nest-session/redis/internal';
import type { SpringKeys } from './spring-keys.js';

const SCANNED_PER_CALL = 500;

/** Pages of the ids of all session hashes of Spring, each of some hundreds of keys. */
export async function* storedIds(client: Redis, keys: SpringKeys): AsyncIterable<string[]> {
  const pattern = `${patternOf(keys.prefix)}sessions:*`;
  const read = (cursor: string) => client.scan(cursor, 'MATCH', pattern, 'COUNT', SCANNED_PER_CALL);
  for await (const page of pages(read)) {
    yield page.map((key) => keys.read(key)).flatMap((key) => (key?.kind === 'session' ? key.id : []));
  }
}
