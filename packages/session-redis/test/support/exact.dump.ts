import type { Redis } from 'ioredis';

/**
 * The content of all keys, each by its name: with every value, score and stream position, the state of each group, and
 * the instant at which the key goes, -1 for never. What leaves everything as it was leaves an equal dump. A stream
 * without anything is as none.
 */
export async function exactDump(client: Redis): Promise<Record<string, unknown>> {
  const keys = (await client.keys('*')).toSorted();
  const contents = keys.map(async (key) => {
    const [type, end] = [await client.type(key), await client.pexpiretime(key)];
    return [key, { type, end, content: await contentOf(client, key, type) }] as const;
  });
  const all = (await Promise.all(contents)).filter(([, { content }]) => content !== undefined);
  return Object.fromEntries(all) as Record<string, unknown>;
}

async function contentOf(client: Redis, key: string, type: string): Promise<unknown> {
  switch (type) {
    case 'hash':
      return client.hgetall(key);
    case 'set':
      return (await client.smembers(key)).toSorted();
    case 'zset':
      return client.zrange(key, '0', '-1', 'WITHSCORES');
    case 'stream':
      return streamOf(client, key);
    case 'list':
      return client.lrange(key, 0, -1);
    default:
      return client.get(key);
  }
}

async function streamOf(client: Redis, key: string): Promise<unknown> {
  const [entries, groups] = [await client.xrange(key, '-', '+'), await groupsOf(client, key)];
  return entries.length + groups.length > 0 ? { entries, groups } : undefined;
}

/** What each group has read, and what is pending. */
async function groupsOf(client: Redis, stream: string): Promise<object[]> {
  const groups = (await client.xinfo('GROUPS', stream)) as string[][];
  const states = groups.map(async (fields) => {
    const [name, read] = ['name', 'last-delivered-id'].map((field) => fields[fields.indexOf(field) + 1]!);
    const pending = (await client.xpending(stream, name!, '-', '+', 1000)) as [string, string, number, number][];
    return {
      name,
      read,
      pending: pending.map(([position, consumer, , deliveries]) => [position, consumer, deliveries]),
    };
  });
  return Promise.all(states);
}
