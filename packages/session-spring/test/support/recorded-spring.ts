import type { SteppableRedisServer } from '@nest-session/test-infrastructure';
import type { Redis } from 'ioredis';
import { RECORDED_CONTEXTS, type RecordedKey, type RecordedKeys, stored } from './spring.records.js';

export const NAMESPACE = 'spring:session';

/** Puts what Spring had stored into an empty Redis, and sets its clock to that moment. */
export async function restoreRecorded(
  server: SteppableRedisServer,
  client: Redis,
  { keys, at }: Pick<RecordedKeys, 'keys' | 'at'>,
): Promise<void> {
  await client.flushall();
  await server.stopClock(at);
  for (const [name, key] of Object.entries(keys)) await restore(client, `${NAMESPACE}:${name}`, key);
}

async function restore(client: Redis, name: string, [type, ttl, content]: RecordedKey): Promise<void> {
  if (type === 'hash')
    await client.hset(name, new Map(Object.entries(content).map(([field, text]) => [field, stored(text)])));
  else if (type === 'set') await client.sadd(name, ...content.map(stored));
  else if (type === 'zset') await client.zadd(name, ...content.flatMap(([member, score]) => [score, stored(member)]));
  else await client.set(name, stored(content));
  if (ttl > 0) await client.pexpire(name, ttl);
}

/** The context of Spring Security of a signed-in user, in the form of a serializer. */
export function recordedContext(name: string, form: 'jdk' | 'secmods'): Buffer {
  return stored(RECORDED_CONTEXTS.find((each) => each.name === name)![form]);
}

/** All keys with their bytes and times to live. The clock stands still, so that they stay the same. */
export async function allBytes(client: Redis): Promise<unknown[]> {
  const keys = (await client.keys('*')).toSorted();
  return Promise.all(keys.map(async (key) => [key, await client.pttl(key), await client.dumpBuffer(key)]));
}

/** What a key has, as bytes in hexadecimal digits, and when it ends in epoch milliseconds; -1 for never. */
export interface KeptKey {
  content: string[];
  readonly end: number;
}

/** All keys, in the order of their names. Redis reorders a hash or a set when it likes to. */
export async function keptIn(client: Redis): Promise<Record<string, KeptKey>> {
  const keys = (await client.keys('*')).toSorted();
  const all = keys.map(async (key) => [
    key,
    { content: await contentOf(client, key), end: await client.pexpiretime(key) },
  ]);
  return Object.fromEntries(await Promise.all(all)) as Record<string, KeptKey>;
}

async function contentOf(client: Redis, key: string): Promise<string[]> {
  const hex = (items: Buffer[]) => items.map((item) => item.toString('hex'));
  switch (await client.type(key)) {
    case 'hash': {
      const items = (await client.callBuffer('HGETALL', key)) as Buffer[];
      const fields = items.flatMap((item, i) =>
        i % 2 === 0 ? [`${item.toString()}=${items[i + 1]!.toString('hex')}`] : [],
      );
      return fields.toSorted();
    }
    case 'set':
      return hex(await client.smembersBuffer(key)).toSorted();
    case 'zset': {
      const items = await client.zrangeBuffer(key, '0', '-1', 'WITHSCORES');
      return items
        .flatMap((item, i) => (i % 2 === 0 ? [`${item.toString('hex')}=${items[i + 1]!.toString()}`] : []))
        .toSorted();
    }
    case 'string':
      return [(await client.getBuffer(key))!.toString('hex')];
    default:
      return [(await client.dumpBuffer(key))!.toString('hex')];
  }
}
