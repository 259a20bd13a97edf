import type { Redis } from 'ioredis';

/** The clock of Redis, in epoch milliseconds. */
export async function redisTime(client: Pick<Redis, 'time'>): Promise<number> {
  const [seconds, microseconds] = await client.time();
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
}
