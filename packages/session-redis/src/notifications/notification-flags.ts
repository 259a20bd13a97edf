import type { Redis } from 'ioredis';
import { ALL_CLASSES } from './key-event-names.js';

/**
 * Adds to the server's `notify-keyspace-events` what is missing of `needed`; what others have set stays. Returns
 * whether that has changed anything. Rejects when CONFIG is not allowed.
 */
export async function requireFlags(client: Redis, needed: string): Promise<boolean> {
  const before = await read(client);
  const present = before.replace('A', ALL_CLASSES);
  const missing = needed.split('').filter((flag) => !present.includes(flag));
  if (missing.length === 0) return false;
  await client.config('SET', 'notify-keyspace-events', before + missing.join(''));
  // Beside `A`, Redis 7.0 does not show the flag `n`.
  return (await read(client)) !== before;
}

async function read(client: Redis): Promise<string> {
  const [, flags = ''] = (await client.config('GET', 'notify-keyspace-events')) as string[];
  return flags;
}
