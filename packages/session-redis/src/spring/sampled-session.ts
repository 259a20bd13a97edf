import type { Redis } from 'ioredis';
import { isReply } from '../connection/reply.errors.js';
import type { SpringKeys } from './spring-keys.js';
import { readSpringSession, type SpringSession } from './spring-session.js';
import { formOf, type StoredForm } from './stored-value.js';

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
  // In upper case, ioredis does not turn the reply into an object.
  const [reply, ttl, at] = await Promise.all([
    client.callBuffer('HGETALL', key).catch(noneIfReplaced) as Promise<Buffer[]>,
    client.pttl(key),
    timeOf(client),
  ]);
  const fields = Array.from(
    { length: reply.length / 2 },
    (_, i) => [reply[2 * i]!.toString(), reply[2 * i + 1]!] as const,
  );
  const session = readSpringSession(fields);
  if (!session) return undefined;
  const forms = fields.map(([, stored]) => formOf(stored)).filter((form) => form !== undefined);
  return { id, session, forms: new Set(forms), ttl, at };
}

/** The clock of Redis, in epoch milliseconds. */
export async function timeOf(client: Redis): Promise<number> {
  const [seconds, microseconds] = await client.time();
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
}

function noneIfReplaced(error: unknown): Buffer[] {
  if (isReply(error, 'WRONGTYPE')) return [];
  throw error;
}
