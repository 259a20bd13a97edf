import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { InvalidSessionOptionsError } from '@nest-session/core';
import { type RedisSessionModuleOptions, resolveRedisSessionOptions } from '../configuration/redis-session.options.js';
import { closeConnections, createConnections } from '../connection/redis-connections.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import { RepartitionRun } from './repartition-run.js';

/** What `repartition()` does now, and what it has done. */
export interface RepartitionProgress {
  /** `events`: what is recorded and not handled yet is copied; `sessions`: they move; `done`. */
  readonly step: 'events' | 'sessions' | 'done';
  /** Number of sessions that this run has moved. */
  readonly moved: number;
}

/** From how many partitions to how many. */
export interface RepartitionOptions {
  /** How many partitions there are; unset: as many as Redis records. */
  readonly from?: number | undefined;
  /** How many there are to be: the option `partitions` of the applications from then on. */
  readonly to: number;
  /** Ends the run. Run it again: it continues. */
  readonly signal?: AbortSignal | undefined;
  /** Called with each step, and while one lasts now and then. */
  readonly onProgress?: ((progress: RepartitionProgress) => void) | undefined;
}

/**
 * Moves all sessions and events of a namespace to another number of partitions while its applications are stopped, also on a
 * Redis Cluster. `options` are those of `RedisSessionModule.forRoot()`; `partitions` is ignored. Until it has resolved, no
 * application starts. It can be ended at any time, also by a crash, and run again. Resolves to the number of sessions that it
 * has moved: 0 when they are there already.
 * @throws InvalidSessionOptionsError when an application runs, or when there are not `from` partitions; SessionStoreError when
 *   stray keys are in the way; and the error of ioredis when Redis fails
 */
export async function repartition(
  options: RedisSessionModuleOptions,
  { from, to, signal, onProgress }: RepartitionOptions,
): Promise<{ readonly moved: number }> {
  if (from === to) {
    throw new InvalidSessionOptionsError('RedisSessionModule', ['Options `from` and `to` must be two numbers.']);
  }
  const resolved = resolveRedisSessionOptions({ ...options, partitions: to });
  const connections = createConnections(resolved);
  try {
    await connections.background.connect();
    const name = `${hostname()}:${process.pid}:${randomUUID()}`;
    const target = new SessionPartitions(resolved.namespace, resolved.partitions);
    return await new RepartitionRun(connections.background, target, name).run({ from, signal, onProgress });
  } finally {
    await closeConnections(connections);
  }
}
