import type { Redis } from 'ioredis';
import {
  type BackgroundLimiter,
  type DueSweeper,
  partitionsByNode,
  SweepCounter,
  type SweepOptions,
  type SweepResult,
} from '@nest-session/redis-events/internal';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import type { SessionKeys } from '../keys/session-keys.js';
import type { SessionPartitions } from '../keys/session-partitions.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';
import { BucketExpirationStore } from './bucket-expiration.store.js';
import { SortedSetExpirationStore } from './sorted-set-expiration.store.js';
import { tracedPass } from './traced-sweep.js';

/** The name of the cleanup job in `SchedulerRegistry`. */
export const SESSION_CLEANUP_JOB = 'session-cleanup';

/**
 * Finds the sessions that have expired, and claims them, wherever their ends are noted. It reads the bucket list
 * instead of counting minutes, so it needs no care after an outage or a clock step. Any number of instances may sweep
 * at once: a script claims each session once.
 */
export class SessionExpirationSweeper implements DueSweeper<SessionKeys> {
  /** @internal */
  readonly what = 'sessions';
  readonly #stores: readonly Pick<DueSweeper<SessionKeys>, 'sweep'>[];

  /**
   * @internal `RedisSessionModule` does this: inject the sweeper.
   * @param stores where ends are noted. By default in our own form
   */
  constructor(
    private readonly client: Redis,
    scripts: SessionScripts,
    private readonly partitions: Pick<SessionPartitions, 'all' | 'namespace'>,
    { batchSize }: Pick<ResolvedRedisSessionOptions, 'batchSize'>,
    limiter: BackgroundLimiter,
    stores?: readonly Pick<DueSweeper<SessionKeys>, 'sweep'>[],
  ) {
    this.#stores = stores ?? [
      new BucketExpirationStore(client, scripts, batchSize, limiter),
      new SortedSetExpirationStore(client, scripts, batchSize, limiter),
    ];
  }

  /**
   * One pass over every session that is due by Redis' clock. A batch that fails is logged, and left to the next pass.
   * Rejects with the error of ioredis when a bucket list cannot be read. The nodes of a Cluster are swept at the same
   * time.
   */
  async runOnce(options: SweepOptions = {}): Promise<SweepResult> {
    const tally = new SweepCounter((options.ahead ?? 0) > 0);
    await this.pass(tally, options).finally(() => tally.report(options.signal));
    return tally.result;
  }

  /** @internal The same, without a word in the log. */
  async pass(tally: SweepCounter, options: SweepOptions): Promise<void> {
    const nodes = [...partitionsByNode(this.client, this.partitions.all).values()];
    const passes = await Promise.allSettled(nodes.map((its) => this.sweep(its, tally, options)));
    const failed = passes.find(({ status }) => status === 'rejected');
    if (failed) throw (failed as PromiseRejectedResult).reason;
  }

  /** @internal A pass over partitions of one node. */
  sweep(partitions: readonly SessionKeys[], tally: SweepCounter, options: SweepOptions): Promise<void> {
    const sweep = async () => {
      for (const store of this.#stores) await store.sweep(partitions, tally, options);
    };
    return tracedPass('sweep', this.partitions, tally, sweep);
  }
}
