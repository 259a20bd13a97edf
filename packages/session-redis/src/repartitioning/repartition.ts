import { InvalidSessionOptionsError } from '@nest-session/core';
import type { Redis } from 'ioredis';
import { isOfCluster } from '../configuration/redis-address.options.js';
import { type RedisSessionModuleOptions, resolveRedisSessionOptions } from '../configuration/redis-session.options.js';
import { closeConnection } from '../connection/close-connection.js';
import { openRedis } from '../connection/open-redis.js';
import { type RepartitioningOptions, SessionRepartitioner } from './session-repartitioner.js';

/**
 * Moves the sessions of a namespace to another number of partitions while applications use them, as
 * `SessionRepartitioner` does, from a process without NestJS. `options` are those of `RedisSessionModule.forRoot()`.
 */
export async function repartition(
  options: RedisSessionModuleOptions,
  { signal, onProgress }: RepartitioningOptions = {},
): Promise<{ readonly moved: number }> {
  const resolved = resolveRedisSessionOptions(options);
  const { connection, namespace } = resolved;
  if (isOfCluster(connection)) {
    throw new InvalidSessionOptionsError('RedisSessionModule', [
      'Sessions on a Cluster cannot move to other partitions.',
    ]);
  }
  let failure: unknown;
  const client: Redis = openRedis(connection, {
    lazyConnect: true,
    connectionName: `${namespace}:repartition`,
    maxRetriesPerRequest: null,
    retryStrategy: (attempt) => (attempt > MOST_ATTEMPTS ? null : Math.min(50 * 2 ** attempt, 1000)),
  });
  client.on('error', (error) => (failure = error));
  try {
    return await new SessionRepartitioner(client, resolved).run({
      ...(signal && { signal }),
      ...(onProgress && { onProgress }),
    });
  } catch (error) {
    if (client.status === 'end' && failure !== undefined) throw failure;
    throw error;
  } finally {
    await closeConnection(client);
  }
}

// An outage of about a minute.
const MOST_ATTEMPTS = 60;
