import type { Redis } from 'ioredis';

interface ExactKey {
  readonly type: string;
  /** When it goes, in epoch milliseconds; -1 for never. */
  readonly end: number;
  readonly content: unknown;
}

/**
 * The content of all keys but `besides`, each by its name: with every value, score and stream position, the state of each group, and
 * the instant at which the key goes, -1 for never. What leaves everything as it was leaves an equal dump. A stream
 * without anything is as none.
 */
export async function exactDump(client: Redis, besides: readonly string[] = []): Promise<Record<string, ExactKey>> {
  const keys = (await client.keys('*')).filter((key) => !besides.includes(key)).toSorted();
  const contents = keys.map(async (key) => {
    const [type, end] = [await client.type(key), await client.pexpiretime(key)];
    return [key, { type, end, content: await contentOf(client, key, type) }] as const;
  });
  const all = (await Promise.all(contents)).filter(([, { content }]) => content !== undefined);
  return Object.fromEntries(all);
}

// Milliseconds. What is kept for some time from now on is kept for a little longer each time.
const TOLERANCE = 30_000;

/** Fails unless both are the same. Only the ends of keys may be some seconds apart. */
export function expectAlike(one: Record<string, ExactKey>, other: Record<string, ExactKey>): void {
  const alike = Object.entries(one).map(([key, content]) => {
    const expected = other[key]?.end;
    const isLike = expected !== undefined && expected >= 0 && Math.abs(content.end - expected) <= TOLERANCE;
    return [key, isLike && content.end >= 0 ? { ...content, end: expected } : content] as const;
  });
  expect(Object.fromEntries(alike)).toEqual(other);
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
