import { Inject, Injectable } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { partitionsByNode } from './connection/node-with.js';
import { InjectConnection } from './connection/redis-connections.js';
import { SessionEventTrimmer } from './delivery/session-event.trimmer.js';
import { CleanupTurns } from './expiration/cleanup-turns.js';
import { SessionExpirationSweeper } from './expiration/session-expiration.sweeper.js';
import type { SessionKeys } from './keys/session-keys.js';
import { logger } from './logging/redis-session.logger.js';
import { settledWithin } from './timing/settled-within.js';

// Milliseconds. Dead instances stay for an hour anyway.
const HOUR = 3_600_000;
// Node.js fires a longer timer at once.
const LONGEST_TIMER = 2 ** 31 - 1;

/**
 * What the cleanup job does at each tick: it claims the sessions that have expired, and trims their events, in the partitions
 * whose turn this instance has. A node that does not reply holds up no other one, and not the next tick.
 */
@Injectable()
export class SessionCleanup {
  /** Monotonic time. */
  #nextCheck = 0;

  constructor(
    @InjectConnection('background') private readonly client: Redis,
    @Inject(CleanupTurns) private readonly turns: CleanupTurns,
    @Inject(SessionExpirationSweeper) private readonly sweeper: SessionExpirationSweeper,
    @Inject(SessionEventTrimmer) private readonly trimmer: SessionEventTrimmer,
  ) {}

  /** `period`: milliseconds until the next tick. */
  async run(period: number, signal: AbortSignal): Promise<void> {
    const { due, isFirst } = await this.turns.take(period);
    const nodes = [...partitionsByNode(this.client, due).values()];
    const cleaned = Promise.all(nodes.map((its) => this.turns.during(its, () => this.#cleanUp(its, signal))));
    const work = cleaned.then(async (counts) => {
      const late = counts.reduce((sum, count) => sum + count, 0);
      if (late > 0) logger.log(`Caught up with ${late} sessions that had ended unnoticed`);
      if (isFirst) await this.#checkGroups(due.length > 0, signal);
    });
    // What fails later, when the node replies again, a later tick repeats.
    work.catch(() => undefined);
    if (await settledWithin(Math.min(period, LONGEST_TIMER), work)) await work;
  }

  async #cleanUp(partitions: readonly SessionKeys[], signal: AbortSignal): Promise<number> {
    const { late } = await this.sweeper.sweep(partitions, { signal });
    await this.trimmer.runOnce({ signal, partitions });
    return late;
  }

  /** At rest, once an hour. */
  async #checkGroups(isBusy: boolean, signal: AbortSignal): Promise<void> {
    if (!isBusy && performance.now() < this.#nextCheck) return;
    this.#nextCheck = performance.now() + HOUR;
    await this.trimmer.checkGroups(signal);
  }
}
