import type { Redis } from 'ioredis';
import { isReply } from '../connection/reply.errors.js';
import { ATTRIBUTE_FIELD, type SessionKeys } from '../keys/session-keys.js';
import { SESSION_FIELDS } from './redis-session.mapper.js';

/** The reply of PTTL for a key that does not exist. */
export const NO_KEY = -2;

/**
 * Reads the fields of a session hash, as alternating names and texts, and the PTTL of its shadow key.
 * @param only the names of the attributes to read. If unset, all are read
 */
export function readSession(
  client: Redis,
  keys: SessionKeys,
  id: string,
  only?: readonly string[],
): readonly [fields: Promise<unknown>, ttl: Promise<number>] {
  const key = keys.session(id);
  // For HGETALL in upper case, ioredis does not turn the reply into an object. The shadow key is read last, so a
  // session that ends between the two commands counts as ended.
  const fields = only ? readFields(client, key, only) : client.call('HGETALL', key);
  return [fields.catch(noFieldsIfForeign), client.pttl(keys.shadow(id))];
}

async function readFields(client: Redis, key: string, attributes: readonly string[]): Promise<string[]> {
  const names = [...SESSION_FIELDS, ...attributes.map((name) => ATTRIBUTE_FIELD + name)];
  const texts = await client.hmget(key, ...names);
  return names.flatMap((name, i) => (typeof texts[i] === 'string' ? [name, texts[i]] : []));
}

/** A stray key in place of a session hash counts as no session. */
function noFieldsIfForeign(error: unknown): string[] {
  if (isReply(error, 'WRONGTYPE')) return [];
  throw error;
}
