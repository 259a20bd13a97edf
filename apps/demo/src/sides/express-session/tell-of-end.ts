import type { Redis } from 'ioredis';
import { environment } from '../../environment.js';
import type { EndEntry } from '../side.js';
import { keyOf } from './redis.connection.js';

const SECONDS_KEPT = 3600;

/** Writes down what happened at the end of a session or of an order. `Sides` reads it. */
export async function tellOfEnd(redis: Redis, id: string, entry: Pick<EndEntry, 'type' | 'items'>): Promise<void> {
  const text = JSON.stringify({ at: Date.now(), instance: environment.instance, ...entry });
  await redis.multi().rpush(keyOf('end', id), text).expire(keyOf('end', id), SECONDS_KEPT).exec();
}
