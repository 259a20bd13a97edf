import { Inject, Injectable } from '@nestjs/common';
import { CONSUMER_IDENTITY, EVENT_RULES } from '../delivery/delivery.tokens.js';
import type { PartitionKeys } from '../partitions/partition-keys.js';
import type { ConsumerIdentity } from '../scripts/delivery/delivery.scripts.js';
import { Partitions } from '../partitions/partitions.js';
import {
  EventStreamScripts,
  type TakeCleanupTurnReply,
  type TrimLimits,
} from '../scripts/stream/event-stream.scripts.js';
import { settledWithin } from '../timing/settled-within.js';

// Milliseconds. A node that does not reply by then is left to the next tick.
const PATIENCE = 1000;
// A turn ends before the next tick of the instance that has it.
const SHARE = 0.9;

/**
 * Lets the instances take turns with the cleanup: each partition is cleaned up by one of them at a time, the first that
 * asks. take-cleanup-turn.lua gives it the turn.
 */
@Injectable()
export class CleanupTurns {
  /** The partitions that have not replied, or are still being cleaned up. */
  readonly #busy = new Set<PartitionKeys>();

  constructor(
    @Inject(EventStreamScripts) private readonly scripts: Pick<EventStreamScripts, 'takeCleanupTurn'>,
    @Inject(CONSUMER_IDENTITY) private readonly instance: Pick<ConsumerIdentity, 'consumer'>,
    @Inject(EVENT_RULES) private readonly rules: TrimLimits,
    @Inject(Partitions) private readonly partitions: Pick<Partitions, 'shareOf'>,
  ) {}

  /**
   * Takes the turn of a partition if that is free. `left`: milliseconds until the next tick. `'busy'`: this instance
   * still cleans it up. `'silent'`: its node does not reply.
   */
  async take(partition: PartitionKeys, left: number): Promise<TakeCleanupTurnReply | 'busy' | 'silent'> {
    if (this.#busy.has(partition)) return 'busy';
    this.#busy.add(partition);
    const duration = Math.max(1, Math.floor(left * SHARE));
    const limits = { ...this.rules, maxLength: this.partitions.shareOf(this.rules.maxLength) };
    const asking = this.scripts
      .takeCleanupTurn(partition, this.instance.consumer, duration, limits)
      .finally(() => this.#busy.delete(partition));
    return (await settledWithin(PATIENCE, asking)) ? asking : 'silent';
  }

  /** Cleans up a partition. It has no turn of this instance again before that has finished. */
  async during(partition: PartitionKeys, cleanUp: () => Promise<void>): Promise<void> {
    this.#busy.add(partition);
    try {
      await cleanUp();
    } finally {
      this.#busy.delete(partition);
    }
  }
}
