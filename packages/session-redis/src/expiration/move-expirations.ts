import { InvalidSessionOptionsError } from '@nest-session/core';
import { partitionsByNode } from '../connection/node-with.js';
import type { RedisSessionModuleOptions } from '../configuration/redis-session.options.js';
import { resolveRedisSessionOptions } from '../configuration/redis-session.options.js';
import { checkStore, recordedPartitions } from '../connection/check-store.js';
import { withConnections } from '../connection/with-connections.js';
import { BucketExpirationStore } from './bucket-expiration.store.js';
import { SortedSetExpirationStore } from './sorted-set-expiration.store.js';
import { SweepCounter } from '../cleanup/sweep.counter.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import { keepingRules } from '../scripts/session/keeping-rules.js';
import { SessionScripts } from '../scripts/session/session.scripts.js';
import { BackgroundLimiter } from '../timing/background.limiter.js';

/** What `moveExpirations()` has done. */
export interface MovedExpirations {
  /** Live sessions whose ends are now noted where the option `expirations` says. */
  readonly moved: number;
  /** Sessions that had ended unnoticed, and were reported. */
  readonly ended: number;
  /**
   * Minutes that still have a bucket, or sessions in the sorted set: instances with another setting note ends there.
   */
  readonly left: number;
}

// Milliseconds ahead: every session.
const ALL = Number.MAX_SAFE_INTEGER / 2;
const MOST_PASSES = 10;

/**
 * Moves the ends of all sessions to where the option `expirations` says, while applications use them. Not necessary:
 * what is left moves by itself until its time has come. `options` are those of `RedisSessionModule.forRoot()`;
 * `expirations` is required. It can be ended at any time, and run again.
 * @throws InvalidSessionOptionsError when `expirations` is missing, or when no application has started in the
 *   namespace; SessionStoreError when Redis cannot be reached, or fails
 */
export async function moveExpirations(
  options: RedisSessionModuleOptions,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<MovedExpirations> {
  const resolved = resolveRedisSessionOptions(options);
  if (options.expirations === undefined) {
    throw new InvalidSessionOptionsError('RedisSessionModule', [
      'Option `expirations` is missing: where to move the ends of the sessions, "buckets" or "sorted-set".',
    ]);
  }
  const partitions = new SessionPartitions(resolved.namespace, resolved.partitions);
  return withConnections(resolved, async ({ background: client }) => {
    await recordedPartitions(client, partitions);
    await checkStore({ run: (command) => command(client) }, partitions);
    const scripts = new SessionScripts(client, partitions, keepingRules(resolved, partitions));
    const limiter = new BackgroundLimiter();
    const isSorted = resolved.expirations.store === 'sorted-set';
    // A sweep gives each live session a place where the option says.
    const store = isSorted
      ? new BucketExpirationStore(client, scripts, resolved.batchSize, limiter)
      : new SortedSetExpirationStore(client, scripts, resolved.batchSize, limiter);
    let [moved, ended, left] = [0, 0, 0];
    // A pass misses a session that is rotated meanwhile.
    for (let pass = 0; pass < MOST_PASSES; pass++) {
      const tally = new SweepCounter(true);
      for (const its of partitionsByNode(client, partitions.all).values()) {
        await store.sweep(its, tally, { ahead: ALL, ...(signal && { signal }) });
      }
      signal?.throwIfAborted();
      if (tally.failures.length > 0) throw tally.failures[0];
      moved += tally.result.alive;
      ended += tally.result.claimed;
      const counts = partitions.all.map(({ bucketList, ends }) => client.zcard(isSorted ? bucketList : ends));
      left = (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
      if (left === 0) break;
    }
    return { moved, ended, left };
  });
}
