import type { Redis } from 'ioredis';

/**
 * Has the server announce expired keys, which takes the flags E (key events) and x (expired) or A (all) in
 * `notify-keyspace-events`; others that are set stay. True when they were missing. Throws when CONFIG is not allowed.
 */
export async function enableExpiredEvents(client: Redis): Promise<boolean> {
  const [, flags = ''] = (await client.config('GET', 'notify-keyspace-events')) as string[];
  const missing = (flags.includes('E') ? '' : 'E') + (/[xA]/.test(flags) ? '' : 'x');
  if (missing === '') return false;
  await client.config('SET', 'notify-keyspace-events', flags + missing);
  return true;
}
