import type { Redis } from 'ioredis';
import { ALL_CLASSES } from './key-events.js';

/**
 * Adds to the server's `notify-keyspace-events` what is missing of `needed`; what others have set stays. Returns
 * whether anything was missing. Rejects when CONFIG is not allowed.
 */
export async function requireFlags(client: Redis, needed: string): Promise<boolean> {
  const [, flags = ''] = (await client.config('GET', 'notify-keyspace-events')) as string[];
  const present = flags.replace('A', ALL_CLASSES);
  const missing = needed.split('').filter((flag) => !present.includes(flag)).join('');
  if (missing === '') return false;
  await client.config('SET', 'notify-keyspace-events', flags + missing);
  return true;
}
