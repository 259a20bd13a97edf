import type { Redis } from 'ioredis';

/**
 * The content of all keys but `besides`, without times and stream positions, so that the dumps of the same calls at
 * different times are equal.
 */
export async function dump(client: Redis, besides: readonly string[] = []): Promise<string[]> {
  const keys = (await client.keys('*')).filter((key) => !besides.includes(key));
  const contents = await Promise.all(
    keys.map(async (key) => {
      const type = await client.type(key);
      const isBounded = (await client.pttl(key)) >= 0;
      return JSON.stringify({ key, type, isBounded, content: await contentOf(client, key, type) });
    }),
  );
  return contents.map((text) => text.replaceAll(/\d{13}(?:-\d+)?/g, '<time>')).sort();
}

async function contentOf(client: Redis, key: string, type: string): Promise<unknown> {
  switch (type) {
    case 'hash':
      return Object.entries(await client.hgetall(key))
        .map(String)
        .sort();
    case 'set':
      return (await client.smembers(key)).sort();
    case 'zset':
      return client.zrange(key, '0', '-1');
    case 'stream':
      return { entries: await client.xrange(key, '-', '+'), groups: await groupsOf(client, key) };
    default:
      return client.get(key);
  }
}

// Longer than a test takes: a longer idle time was set by the test.
const LONG = 30_000;

async function groupsOf(client: Redis, stream: string): Promise<unknown> {
  const groups = (await client.xinfo('GROUPS', stream)) as string[][];
  return Promise.all(
    groups.map(async ([, name]) => {
      const consumers = (await client.xinfo('CONSUMERS', stream, name!)) as string[][];
      const pending = (await client.xpending(stream, name!, '-', '+', 100)) as [string, string, number, number][];
      return {
        name,
        consumers: consumers.map(([, consumer]) => consumer),
        pending: pending.map(([position, consumer, idle, deliveries]) => [position, consumer, idle > LONG, deliveries]),
      };
    }),
  );
}
