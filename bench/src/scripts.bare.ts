import { randomBytes } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { SessionKeys } from '../../packages/session-redis/dist/keys/session-keys.js';

export type BareName = 'save' | 'touch' | 'create' | 'changeId' | 'delete';

// Each does the least: it checks only that the session lives, and trusts all that is recorded.
const RENEW = `
if redis.call('PEXPIRE', KEYS[2], 1800000) == 0 then return 'gone' end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local last = tonumber(redis.call('HGET', KEYS[1], 'lastAccessedTime'))
if last < now then redis.call('HSET', KEYS[1], 'lastAccessedTime', now) end
redis.call('PEXPIRE', KEYS[1], 2100000)
`;

const SOURCES: Record<BareName, string> = {
  touch: `${RENEW} return 'touched'`,
  save: `${RENEW} redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) return 'saved'`,
  create: `
if redis.call('EXISTS', KEYS[1]) == 1 then return 'collision' end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local minute = math.floor((now + 1860000) / 60000) * 60000
redis.call('HSET', KEYS[1], 'creationTime', now, 'lastAccessedTime', now, 'maxInactiveInterval', '1800', unpack(ARGV, 2))
redis.call('SET', KEYS[2], '', 'PX', 1800000)
redis.call('PEXPIRE', KEYS[1], 2100000)
redis.call('SADD', KEYS[3] .. ':' .. minute, 'expires:' .. ARGV[1])
redis.call('ZADD', KEYS[3], minute, minute)
redis.call('XADD', KEYS[4], '*', 'type', 'created', 'session', ARGV[1], 'at', now)
return 'created'`,
  changeId: `${RENEW}
local minute = redis.call('HGET', KEYS[1], 'bucket')
redis.call('SREM', KEYS[3] .. ':' .. minute, 'expires:' .. ARGV[1])
redis.call('SADD', KEYS[3] .. ':' .. minute, 'expires:' .. ARGV[2])
redis.call('RENAME', KEYS[1], KEYS[5])
redis.call('RENAME', KEYS[2], KEYS[6])
redis.call('SET', KEYS[7], ARGV[2], 'PX', 60000)
redis.call('XADD', KEYS[4], '*', 'type', 'id-changed', 'session', ARGV[2], 'at', now, 'previous', ARGV[1])
return 'saved'`,
  delete: `
if redis.call('DEL', KEYS[2]) == 0 then return 'gone' end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], 'ended', '"deleted"', 'maxInactiveInterval', '0')
redis.call('PEXPIRE', KEYS[1], 3600000)
redis.call('SREM', KEYS[3] .. ':' .. redis.call('HGET', KEYS[1], 'bucket'), 'expires:' .. ARGV[1])
redis.call('XADD', KEYS[4], '*', 'type', 'deleted', 'session', ARGV[1], 'at', now)
return 'deleted'`,
};

/** A call of each bare script for a session, by EVALSHA as ioredis makes it. */
export function bareScripts(client: Redis, keys: SessionKeys): Record<BareName, (id: string) => Promise<unknown>> {
  for (const [name, lua] of Object.entries(SOURCES)) client.defineCommand(`bare${name}`, { lua });
  const run = client as unknown as Record<string, (count: number, ...rest: string[]) => Promise<unknown>>;
  const keysOf = (id: string) => [keys.session(id), keys.shadow(id), keys.bucketList, keys.events];
  const attributes = Array.from({ length: 8 }, (_, i) => [`sessionAttr:attribute${i}`, JSON.stringify('x'.repeat(98))]);
  const text = () => randomBytes(64).toString('base64url');
  return {
    save: (id) => run['baresave']!(4, ...keysOf(id), 'sessionAttr:attribute3', text()),
    touch: (id) => run['baretouch']!(4, ...keysOf(id)),
    create: (id) => run['barecreate']!(4, ...keysOf(id), id, ...attributes.flat()),
    changeId: (id) => {
      const newId = randomBytes(32).toString('base64url');
      const others = [keys.session(newId), keys.shadow(newId), keys.forwardingMark(id)];
      return run['barechangeId']!(7, ...keysOf(id), ...others, id, newId);
    },
    delete: (id) => run['baredelete']!(4, ...keysOf(id), id),
  };
}
