import type { RedisOptions } from 'ioredis';
import { retryAfter } from './retry-after.js';

/** The options of ioredis for the connections of requests, which wait for Redis for so many milliseconds at most. */
export function requestConnectionOptions(commandTimeout: number): RedisOptions {
  return {
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    // A request waits for the end of the pause even when Redis is back, and must still meet its command timeout.
    retryStrategy: retryAfter(commandTimeout / 4),
    // Short: a connection that died silently fails every request until it is replaced.
    socketTimeout: 2 * commandTimeout,
  };
}
