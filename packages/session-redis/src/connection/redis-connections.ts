import { Inject } from '@nestjs/common';
import { Redis, type RedisOptions } from 'ioredis';
import { OutageLog } from './outage.log.js';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';

/** What a connection is for, and so by which rules it behaves. */
export interface RedisConnections {
  /** Requests: a command is sent once or not at all, and nobody waits in a queue. Only through RequestConnection. */
  readonly request: Redis;
  /** Background work: waits out a restart of Redis and sends again what had no answer; its scripts allow that. */
  readonly background: Redis;
  /** What Redis announces of shadow keys. Opened, closed and subscribed anew by its KeyspaceNotificationListener. */
  readonly subscriber: Redis;
  /** The same for what the application listens to, if it does. */
  readonly notifications: Redis;
  /** Waits for events. Never with a command timeout: what arrives after it is delivered to nobody. */
  readonly reader: Redis;
  /** The same for the events that are broadcast; opened when a method of this instance is to hear of them. */
  readonly broadcast: Redis;
}

/** The token of one connection. */
export function connectionToken(name: keyof RedisConnections): string {
  return `RedisSession:${name}`;
}

/** Injects one connection. */
export const InjectConnection = (name: keyof RedisConnections) => Inject(connectionToken(name));

const LONGEST_PAUSE = 1000;
// A connection whose other end has vanished is never closed by TCP while we wait. Longer than the reader blocks.
const SILENCE = 10_000;

const retryAfter = (longestPause: number) => (attempt: number) => Math.min(50 * 2 ** attempt, longestPause);
const retryStrategy = retryAfter(LONGEST_PAUSE);

/** Whatever the application's own client is set to. */
const COMMON: RedisOptions = {
  lazyConnect: true,
  // Never gives up: sessions must be back as soon as Redis is.
  retryStrategy,
  sentinelRetryStrategy: retryStrategy,
  maxRetriesPerRequest: null,
  // The server was a master and is none any more. The next connection finds the one that is; the command is not sent
  // again, so that a server which stays read-only is not asked without end.
  reconnectOnError: (error) => error.message.startsWith('READONLY'),
  enableOfflineQueue: true,
  autoResendUnfulfilledCommands: true,
  enableAutoPipelining: false,
  commandTimeout: undefined,
  blockingTimeout: undefined,
  stringNumbers: false,
  replyMapping: 'legacy',
};

/** Connections of our own, not connected yet. A client of the application is only a pattern for them. */
export function createConnections(options: ResolvedRedisSessionOptions): RedisConnections {
  const log = new OutageLog();
  const open = (name: string, rules: RedisOptions): Redis => {
    const all = { ...COMMON, ...rules, connectionName: `${options.namespace}:${name}` };
    const { connection } = options;
    const client = 'client' in connection ? connection.client.duplicate(all) : new Redis(connection.url, all);
    log.watch(client);
    client.on('close', () => endSocketTimeout(client));
    return client;
  };
  // ioredis subscribes again without waiting for the answer: a connection that is lost then ends the process.
  const subscriber = { autoResubscribe: false, socketTimeout: SILENCE };
  return {
    request: open('request', {
      autoResendUnfulfilledCommands: false,
      enableOfflineQueue: false,
      // A request that comes when Redis is back waits for the end of the pause, and is to be answered in time.
      retryStrategy: retryAfter(options.commandTimeout / 4),
      // Soon: until it is replaced, a connection that died silently fails every request.
      socketTimeout: 2 * options.commandTimeout,
    }),
    background: open('background', { socketTimeout: SILENCE }),
    subscriber: open('subscriber', subscriber),
    notifications: open('notifications', subscriber),
    reader: open('reader', { socketTimeout: SILENCE }),
    broadcast: open('broadcast', { socketTimeout: SILENCE }),
  };
}

/**
 * ioredis 5 leaves the timer of `socketTimeout` running when the connection closes: it keeps the process alive, and then
 * it closes the next connection, which nothing is wrong with. ioredis 6 ends it here, too.
 */
function endSocketTimeout(client: Redis): void {
  const internals = client as unknown as { socketTimeoutTimer: NodeJS.Timeout | undefined };
  clearTimeout(internals.socketTimeoutTimer);
  internals.socketTimeoutTimer = undefined;
}
