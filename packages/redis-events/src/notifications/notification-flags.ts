import type { Redis } from 'ioredis';
import { ALL_CLASSES } from './key-event-names.js';

/** What was last begun, by the address of the server. */
const turns = new Map<string, Promise<unknown>>();

/**
 * Adds the missing flags of `needed` to the server's `notify-keyspace-events`, and removes none. Resolves to whether
 * the setting changed. Rejects if CONFIG is not allowed.
 */
export function requireFlags(client: Redis, needed: string): Promise<boolean> {
  // One connection of the process after the other: of two that read before either writes, one would lose its flags.
  const { host, port, path } = client.options;
  const server = [host, port, path].join(' ');
  const added = Promise.resolve(turns.get(server)).then(() => addFlags(client, needed));
  turns.set(
    server,
    added.catch(() => undefined),
  );
  return added;
}

async function addFlags(client: Redis, needed: string): Promise<boolean> {
  const before = await read(client);
  const present = before.replace('A', ALL_CLASSES);
  const missing = needed.split('').filter((flag) => !present.includes(flag));
  if (missing.length === 0) return false;
  await client.config('SET', 'notify-keyspace-events', before + missing.join(''));
  // Redis 7.0 does not show the flag `n` together with `A`, so compare the settings.
  return (await read(client)) !== before;
}

async function read(client: Redis): Promise<string> {
  const [, flags = ''] = (await client.config('GET', 'notify-keyspace-events')) as string[];
  return flags;
}
