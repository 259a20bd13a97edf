import type { Redis } from 'ioredis';
import {
  type BackgroundLimiter,
  type DueEntry,
  type DueList,
  type DueSweeper,
  isReply,
  type SweepCounter,
  type SweepOptions,
} from '@nest-session/redis-events/internal';
import type { SessionKeys } from '../keys/session-keys.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';
import { sessionsRecordedIn } from './recorded-sessions.js';

/**
 * A sorted set of ids in each partition. One script takes out of it what is due: any number of instances may call it.
 */
export class SortedSetExpirationStore implements Pick<DueSweeper<SessionKeys>, 'sweep'>, DueList<SessionKeys> {
  /** Where a stray key has taken the place of the sorted set, and the sessions that it had have been looked for. */
  readonly #replaced = new Set<SessionKeys>();

  constructor(
    private readonly client: Redis,
    private readonly scripts: Pick<SessionScripts, 'claimDue' | 'claimExpired'>,
    private readonly batchSize: number,
    private readonly limiter: BackgroundLimiter,
  ) {}

  async sweep(partitions: readonly SessionKeys[], tally: SweepCounter, options: SweepOptions): Promise<void> {
    for (const partition of partitions) {
      if (options.signal?.aborted) return;
      await this.claimIn(partition, tally, options).catch((error: unknown) => tally.failures.push(error));
    }
  }

  /**
   * Milliseconds until the earliest session that is left is due; undefined when there is none, or the pass was aborted.
   * Rejects when a stray key has taken the place of the sorted set: the sessions that it had are in buckets by then.
   */
  async claimIn(partition: SessionKeys, tally: SweepCounter, options: SweepOptions = {}): Promise<number | undefined> {
    try {
      const next = await this.#claimDue(partition, tally, options);
      this.#replaced.delete(partition);
      return next;
    } catch (error) {
      const isReplaced = isReply(error, 'WRONGTYPE') && error.message.includes(`${partition.ends} `);
      if (isReplaced && !this.#replaced.has(partition)) await this.#claimLost(partition, tally, options);
      throw error;
    }
  }

  async #claimDue(
    partition: SessionKeys,
    tally: SweepCounter,
    { ahead = 0, signal }: SweepOptions,
  ): Promise<number | undefined> {
    let last: DueEntry | undefined;
    while (!signal?.aborted) {
      const after = ahead > 0 ? last : undefined;
      const call = () => this.scripts.claimDue(partition, this.batchSize, ahead, after);
      const { entries: sessions, next, now } = await this.limiter.run(call, partition.prefix);
      for (const session of sessions) {
        tally.count(partition, partition.memberOf(session.id), session, Number(session.time), now);
      }
      if (sessions.length < this.batchSize) return next;
      last = sessions.at(-1);
    }
    return undefined;
  }

  /** The sessions that stood in the sorted set before a stray key took its place. Those that live go to buckets. */
  async #claimLost(partition: SessionKeys, tally: SweepCounter, { signal }: SweepOptions): Promise<void> {
    const { prefix } = partition;
    for await (const ids of sessionsRecordedIn(this.client, partition, null)) {
      while (ids.length > 0) {
        if (signal?.aborted) return;
        const members = ids.splice(0, this.batchSize).map((id) => partition.memberOf(id));
        const claims = await this.limiter.run(() => this.scripts.claimExpired(partition, members, 'ends'), prefix);
        for (const [i, claim] of claims.entries()) tally.count(partition, members[i], claim, Infinity, 0);
      }
    }
    this.#replaced.add(partition);
  }
}
