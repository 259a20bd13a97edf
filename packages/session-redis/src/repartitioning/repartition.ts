import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { InvalidSessionOptionsError } from '@nest-session/core';
import { type RedisSessionModuleOptions, resolveRedisSessionOptions } from '../configuration/redis-session.options.js';
import { withConnections } from '../connection/with-connections.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import { RepartitionRun } from './repartition-run.js';

/** The progress of `repartition()`. */
export interface RepartitionProgress {
  /** `events` copies the events that are not handled yet, `sessions` moves the sessions, and `done` is the end. */
  readonly step: 'events' | 'sessions' | 'done';
  /** The number of live sessions that this run has moved. */
  readonly moved: number;
}

/** Options of `repartition()`. */
export interface RepartitionOptions {
  /** The current number of partitions. If unset, the number that Redis records. */
  readonly from?: number | undefined;
  /** The new number of partitions. Set the option `partitions` of the applications to it afterwards. */
  readonly to: number;
  /** Ends the run. Call `repartition()` again to continue. */
  readonly signal?: AbortSignal | undefined;
  /** Called at each step, and from time to time during a step. */
  readonly onProgress?: ((progress: RepartitionProgress) => void) | undefined;
}

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
