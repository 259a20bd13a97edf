import type { SessionKeys } from '../keys/session-keys.js';
import type { DueSession } from '../scripts/session/due-session.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';
import type { BackgroundLimiter } from '../timing/background.limiter.js';
import type { SessionExpirationStore, SweepOptions } from './session-expiration.store.js';
import type { SweepCounter } from './sweep.counter.js';

/** A sorted set of ids in each partition. One script takes out of it what is due: any number of instances may call it. */
export class SortedSetExpirationStore implements SessionExpirationStore {
  constructor(
    private readonly scripts: Pick<SessionScripts, 'claimDue'>,
    private readonly batchSize: number,
    private readonly limiter: BackgroundLimiter,
  ) {}

  async sweep(partitions: readonly SessionKeys[], tally: SweepCounter, options: SweepOptions): Promise<void> {
    for (const partition of partitions) {
      if (options.signal?.aborted) return;
      await this.claimIn(partition, tally, options).catch((error: unknown) => tally.failures.push(error));
    }
  }

  /** Milliseconds until the earliest session that is left is due; undefined when there is none, or the pass was aborted. */
  async claimIn(
    partition: SessionKeys,
    tally: SweepCounter,
    { ahead = 0, signal }: SweepOptions = {},
  ): Promise<number | undefined> {
    let last: DueSession | undefined;
    while (!signal?.aborted) {
      const after = ahead > 0 ? last : undefined;
      const call = () => this.scripts.claimDue(partition, this.batchSize, ahead, after);
      const { sessions, next, now } = await this.limiter.run(call, partition.prefix);
      for (const { id, outcome, time } of sessions) {
        tally.count(partition, partition.memberOf(id), outcome, Number(time), now);
      }
      if (sessions.length < this.batchSize) return next;
      last = sessions.at(-1);
    }
    return undefined;
  }
}
