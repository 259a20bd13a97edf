import type { Redis } from 'ioredis';
import { isReply } from '@nest-session/redis-events/internal';

/** The fields of a session hash, as they are stored; none of a key of another type. */
export async function readSpringFields(client: Redis, key: string): Promise<[name: string, stored: Buffer][]> {
  try {
    const reply = (await client.callBuffer('HGETALL', key)) as Buffer[];
    return Array.from({ length: reply.length / 2 }, (_, i) => [reply[2 * i]!.toString(), reply[2 * i + 1]!]);
  } catch (error) {
    if (isReply(error, 'WRONGTYPE')) return [];
    throw error;
  }
}
