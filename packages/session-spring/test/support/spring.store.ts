import type { Redis } from 'ioredis';
import { RECORDED_KEYS, type RecordedKeys, stored } from './spring.records.js';

// Puts what Spring has stored into a Redis, as if it were now.

const TIMES = ['creationTime', 'lastAccessedTime'];
const MINUTE = 60_000;

/** The last keys of a recorded scenario, or those after a step of it. */
export function recordedKeys(from: string, scenario: string, step = ''): RecordedKeys {
  const found = RECORDED_KEYS.findLast(
    (each) => each.from === from && each.scenario === scenario && each.step.includes(step),
  );
  if (!found) throw new Error(`Nothing is recorded of ${from} ${scenario} ${step}`);
  return found;
}

/** The ids of the session hashes of a record. */
export function recordedIds({ keys }: RecordedKeys): string[] {
  return Object.entries(keys).flatMap(
    ([name, [type]]) => /^sessions:([^:]+)$/.exec(type === 'hash' ? name : '')?.[1] ?? [],
  );
}

/** Writes all keys of a record. Its times move by whole minutes, as far as up to now. */
export async function loadSpring(
  client: Redis,
  { at, keys }: RecordedKeys,
  namespace = 'spring:session',
): Promise<void> {
  const later = Math.floor((Date.now() - at) / MINUTE) * MINUTE;
  for (const [name, [type, ttl, content]] of Object.entries(keys)) {
    const key = `${namespace}:${name.replace(/^expirations:(\d+)$/, (_, ms: string) => `expirations:${Number(ms) + later}`)}`;
    if (type === 'hash') {
      const fields = Object.entries(content).flatMap(([field, text]) => [field, atTime(field, stored(text), later)]);
      await client.hset(key, ...fields);
    } else if (type === 'set') await client.sadd(key, ...content.map(stored));
    else if (type === 'zset') {
      await client.zadd(key, ...content.flatMap(([member, score]) => [Number(score) + later, stored(member)]));
    } else await client.set(key, stored(content));
    if (ttl >= 0) await client.pexpireat(key, at + later + ttl);
  }
}

/** The field with its time moved: digits in JSON, and the last eight bytes of a Long of Java. */
function atTime(field: string, value: Buffer, later: number): Buffer {
  if (!TIMES.includes(field) || value.length === 0) return value;
  if (value[0] !== 0xac) return Buffer.from(value.toString().replace(/\d{13}/, (ms) => `${Number(ms) + later}`));
  const moved = Buffer.from(value);
  moved.writeBigInt64BE(value.readBigInt64BE(value.length - 8) + BigInt(later), value.length - 8);
  return moved;
}
