import { Inject, Injectable } from '@nestjs/common';
import { BACKGROUND_SESSION_SCRIPTS, CONSUMER_IDENTITY } from '../configuration/redis-session.tokens.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import type { ConsumerIdentity } from '../scripts/delivery/delivery.scripts.js';
import type { SessionScripts, TakeCleanupReply } from '../scripts/session/session.scripts.js';
import { settledWithin } from '../timing/settled-within.js';

/** The partitions whose cleanup is the turn of this instance. */
export interface CleanupTurn {
  /** Those with something to clean up. */
  readonly due: readonly SessionKeys[];
  /** Whether this instance also looks after what all partitions have in common. */
  readonly isFirst: boolean;
}

// Milliseconds. A node that does not reply by then is left to the next turn.
const PATIENCE = 1000;
// A turn ends before the next tick of the instance that has it.
const SHARE = 0.9;

/** Lets the instances take turns with the cleanup: each partition is cleaned up by one of them at a time. */
@Injectable()
export class CleanupTurns {
  /** The partitions that have not replied, or are still being cleaned up. */
  readonly #busy = new Set<SessionKeys>();

  constructor(
    @Inject(BACKGROUND_SESSION_SCRIPTS) private readonly scripts: SessionScripts,
    @Inject(SessionPartitions) private readonly partitions: SessionPartitions,
    @Inject(CONSUMER_IDENTITY) private readonly instance: Pick<ConsumerIdentity, 'consumer'>,
  ) {}

  /** Takes the turns that are free. `period`: milliseconds until the next tick. Rejects when no partition replies. */
  async take(period: number): Promise<CleanupTurn> {
    const words = new Map<SessionKeys, TakeCleanupReply>();
    const errors: unknown[] = [];
    const asking = this.partitions.all
      .filter((keys) => !this.#busy.has(keys))
      .map(async (keys) => {
        this.#busy.add(keys);
        try {
          const duration = Math.max(1, Math.floor(period * SHARE));
          words.set(keys, await this.scripts.takeCleanup(keys, this.instance.consumer, duration));
        } catch (error) {
          errors.push(error);
        }
        this.#busy.delete(keys);
      });
    await settledWithin(PATIENCE, Promise.all(asking));
    if (words.size === 0 && errors.length > 0) throw errors[0];
    const due = [...words].filter(([, word]) => word === 'due').map(([keys]) => keys);
    const ofFirst = words.get(this.partitions.all[0]!);
    return { due, isFirst: ofFirst === 'due' || ofFirst === 'clean' };
  }

  /** Cleans up partitions. None of them has a turn again before that has finished. */
  async during<T>(partitions: readonly SessionKeys[], cleanUp: () => Promise<T>): Promise<T> {
    for (const keys of partitions) this.#busy.add(keys);
    try {
      return await cleanUp();
    } finally {
      for (const keys of partitions) this.#busy.delete(keys);
    }
  }
}
