import type { Redis } from 'ioredis';
import { redisTime } from '@nest-session/redis-events/internal';
import { SPRING_GRACE } from '../scripts/spring/spring.scripts.js';
import { readSpringFields } from '../read/spring-fields.js';
import type { SpringKeys } from '../keys/spring-keys.js';
import { isAlive, readSpringSession, type SpringSession } from '../read/spring-session.js';
import { formOf, type StoredForm } from '../values/stored-value.js';

/** A session that was looked at more closely. */
export interface SampledSession {
  readonly id: string;
  readonly session: SpringSession;
  /** Of its values. */
  readonly forms: ReadonlySet<StoredForm>;
  /** The PTTL of its session hash. */
  readonly ttl: number;
  /** The clock of Redis, in epoch milliseconds. */
  readonly at: number;
}

/** Undefined if there is none, or no whole one. */
export async function sampleSession(client: Redis, keys: SpringKeys, id: string): Promise<SampledSession | undefined> {
  const key = keys.session(id);
  const [fields, ttl, at] = await Promise.all([readSpringFields(client, key), client.pttl(key), redisTime(client)]);
  const session = readSpringSession(fields);
  if (!session) return undefined;
  const forms = fields.map(([, stored]) => formOf(stored)).filter((form) => form !== undefined);
  return { id, session, forms: new Set(forms), ttl, at };
}

/** Whether its session hash is kept longer than it. The simple repository lets both expire together. */
export function outlivesItsSession({ session, ttl, at }: SampledSession): boolean {
  const { lastAccessedTime, maxInactiveInterval } = session;
  return ttl > 0 && at + ttl - lastAccessedTime - Math.max(0, maxInactiveInterval) * 1000 > SPRING_GRACE / 2;
}

/** Whether it is alive, and only the simple repository has written it. `shadows`: how many shadow keys it has. */
export function isOfSimpleRepository(sample: SampledSession, shadows: number): boolean {
  const { session, ttl, at } = sample;
  return shadows === 0 && ttl > 0 && isAlive(session, at) && !outlivesItsSession(sample);
}
