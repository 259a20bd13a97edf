import { LONGEST_REQUEST } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';

// 400 days. Browsers keep no cookie for longer.
const LONGEST_TAKEOVER = 400 * 86_400_000;

/**
 * Like every end, it runs when Redis is out of memory: nothing ends before. A mark that is there keeps its longer time:
 * an instance that takes over sessions may have left it.
 */
const LEAVE_MARK = `#!lua flags=allow-oom
local time, left = redis.call('TIME'), redis.call('PTTL', KEYS[1])
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('SET', KEYS[1], now, 'PX', math.max(left, ARGV[1]))`;

/** Leaves a revocation mark, with the time of Redis. `takesOver`: for as long as takeovers must be refused. */
export async function leaveRevocationMark(client: Redis, key: string, takesOver: boolean): Promise<void> {
  await client.eval(LEAVE_MARK, 1, key, takesOver ? LONGEST_TAKEOVER : LONGEST_REQUEST);
}
