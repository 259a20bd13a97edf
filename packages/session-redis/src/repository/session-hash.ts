import type { SessionInfo } from '@nest-session/core';
import { absoluteTimeoutOf } from '@nest-session/core/internal';
import { type SessionRecord, toSessionInfo } from '@nest-session/core/store';
import { hiddenCommand, ifStray, parsed } from '@nest-session/redis-events/internal';
import type { Redis } from 'ioredis';
import type { StoredRecord } from '../encryption/session-encryption.js';
import { ATTRIBUTE_FIELD, type SessionKeys } from '../keys/session-keys.js';
import type { ListedFields } from '../scripts/session/session.scripts.js';

const TIMES = ['creationTime', 'lastAccessedTime', 'maxInactiveInterval'];

const SESSION_FIELDS = [...TIMES, 'absoluteExpiry', 'authenticatedAt', 'dataKey'];

const LISTED_FIELDS = [...TIMES, 'authenticatedAt', 'device'];

/** The replies of PTTL for a key that does not exist, and for one that never expires. */
export const NO_KEY = -2;
const NEVER = -1;

const orNothing = ifStray([]);

/** The fields, as alternating names and texts, and the PTTL of the shadow key. `only`: which attributes; unset: all. */
export function readSession(
  client: Redis,
  keys: SessionKeys,
  id: string,
  only?: readonly string[],
): readonly [fields: Promise<unknown>, ttl: Promise<number>] {
  const key = keys.session(id);
  // The shadow key is read last, so a session that ends between the two commands counts as ended.
  const fields = only ? readFields(client, key, only) : client.sendCommand(hiddenCommand(client, 'HGETALL', [key]));
  const ttl = client.sendCommand(hiddenCommand(client, 'pttl', [keys.shadow(id)])) as Promise<number>;
  return [(fields as Promise<unknown>).catch(orNothing), ttl];
}

async function readFields(client: Redis, key: string, attributes: readonly string[]): Promise<string[]> {
  const names = [...SESSION_FIELDS, ...attributes.map((name) => ATTRIBUTE_FIELD + name)];
  const texts = await client.hmget(key, ...names);
  return names.flatMap((name, i) => (typeof texts[i] === 'string' ? [name, texts[i]] : []));
}

/** The session in a session hash; undefined if that is empty or incomplete. */
export function toSessionRecord(id: string, hash: Readonly<Record<string, string>>): StoredRecord | undefined {
  return toLiveRecord(id, Object.entries(hash).flat());
}

/** The same of the reply of HGETALL, and the PTTL of the shadow key. */
export function toLiveRecord(id: string, fields: readonly string[], ttl = NEVER): StoredRecord | undefined {
  let creationTime = NaN;
  let lastAccessedTime = NaN;
  let maxInactiveInterval = NaN;
  let absoluteExpiry = NaN;
  let signIn = NaN;
  let dataKey: string | undefined;
  let device: string | undefined;
  let index: string | undefined;
  const attributes: [name: string, text: string][] = [];
  for (let i = 0; i < fields.length; i += 2) {
    const field = fields[i]!;
    const text = fields[i + 1]!;
    if (field.startsWith(ATTRIBUTE_FIELD)) {
      attributes.push([field.slice(ATTRIBUTE_FIELD.length), text]);
    } else if (field === 'creationTime') creationTime = Number(text);
    else if (field === 'lastAccessedTime') lastAccessedTime = Number(text);
    else if (field === 'maxInactiveInterval') maxInactiveInterval = Number(text);
    else if (field === 'absoluteExpiry') absoluteExpiry = Number(text);
    else if (field === 'authenticatedAt') signIn = Number(text);
    else if (field === 'dataKey') dataKey = text;
    else if (field === 'device') device = text;
    else if (field === 'index') index = text;
  }
  // If a time is infinite or missing, the sum is not finite.
  if (!Number.isFinite(creationTime + lastAccessedTime + maxInactiveInterval)) return undefined;
  const authenticatedAt = Number.isFinite(signIn) ? signIn : undefined;
  const absoluteTimeout = absoluteTimeoutOf({ creationTime, authenticatedAt, absoluteExpiry });
  const timeToLive = ttl < 0 ? undefined : ttl;
  const times = { creationTime, authenticatedAt, lastAccessedTime, maxInactiveInterval, absoluteTimeout, timeToLive };
  return { id, ...times, attributes, dataKey, device, index };
}

/** Whether the field `index` of a session hash has an entry of an index, with the hash of its value. */
export function hasIndexEntry(field: string | null | undefined, indexName: string, hash: string): boolean {
  const isIt = (entry: unknown) => Array.isArray(entry) && entry[0] === indexName && entry[1] === hash;
  const entries = parsed(field);
  return Array.isArray(entries) && entries.some(isIt);
}

/** Whether a session can end, and its shadow key has no time to live, such as a stray key. */
export function lacksEnd({ timeToLive, maxInactiveInterval, absoluteTimeout }: SessionRecord): boolean {
  return timeToLive === undefined && (maxInactiveInterval >= 0 || absoluteTimeout >= 0);
}

/** A session in the reply of list-sessions; undefined if its session hash is incomplete. */
export function toListedInfo([id, ttl, ...texts]: ListedFields): SessionInfo | undefined {
  const fields = texts.flatMap((text, i) => (text === null ? [] : [LISTED_FIELDS[i]!, text]));
  const record = toLiveRecord(id, fields, ttl);
  return record && toSessionInfo(record);
}
