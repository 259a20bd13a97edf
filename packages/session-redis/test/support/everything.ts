import type { Redis } from 'ioredis';

/** All keys, and all that they hold, as text. */
export async function everything(client: Redis): Promise<string> {
  const keys = await client.keys('*');
  const contents = await Promise.all(
    keys.map(async (key) => {
      switch (await client.type(key)) {
        case 'hash':
          return client.hgetall(key);
        case 'set':
          return client.smembers(key);
        case 'zset':
          return client.zrange(key, '0', '-1');
        case 'stream':
          return client.xrange(key, '-', '+');
        default:
          return client.get(key);
      }
    }),
  );
  return JSON.stringify([keys, contents]);
}
