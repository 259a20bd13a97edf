import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { InvalidSessionOptionsError } from '@nest-session/core';
import { withConnections } from '@nest-session/redis-events/internal';
import {
  type RedisSessionModuleOptions,
  resolveRedisSessionOptions,
  SessionPartitions,
} from '@nest-session/redis/internal';
import { type RepartitionOptions, RepartitionRun } from './repartition-run.js';

/**
 * Moves all sessions and events of a namespace to another number of partitions while its applications are stopped. It
 * also works on a Redis Cluster. `options` are those of `RedisSessionModule.forRoot()`, and `partitions` is ignored. No
 * application starts until it has resolved. It can end at any time, even by a crash, and be run again. Resolves to the
 * number of live sessions that it has moved, which is 0 if they were moved before.
 * @throws InvalidSessionOptionsError if an application runs, or if there are not `from` partitions; SessionStoreError
 *   if Redis cannot be reached, or fails, or if stray keys are in the way
 */
export async function repartition(
  options: RedisSessionModuleOptions,
  { from, to, signal, onProgress }: RepartitionOptions,
): Promise<{ readonly moved: number }> {
  if (from === to) {
    throw new InvalidSessionOptionsError('RedisSessionModule', ['Options `from` and `to` must be different numbers.']);
  }
  const resolved = resolveRedisSessionOptions({ ...options, partitions: to });
  const target = new SessionPartitions(resolved.namespace, resolved.partitions);
  const name = `${hostname()}:${process.pid}:${randomUUID()}`;
  return withConnections(resolved, ({ background }) =>
    new RepartitionRun(background, target, name).run({ from, signal, onProgress }),
  );
}
