import { Inject, Injectable } from '@nestjs/common';
import { FIRED_KNOWN_FOR } from '../deadlines/deadline.store.js';
import {
  BackgroundLimiter,
  type DueList,
  DueSweeper,
  EVENT_RULES,
  type eventRules,
  logger,
  type SweepCounter,
  type SweepOptions,
} from '@nest-session/redis-events/internal';
import { type DeadlineKeys, DeadlinePartitions } from './deadline-keys.js';
import type { DeadlineScripts, FiringRules } from '../scripts/deadlines/deadline.scripts.js';
import { REDIS_DEADLINE_OPTIONS, type ResolvedRedisDeadlineOptions } from './redis-deadline.options.js';
import { BACKGROUND_DEADLINE_SCRIPTS } from './redis-deadline.tokens.js';

/** Deadlines per call: one takes Redis about 20 µs, and other commands wait as long as a call. */
const BATCH_SIZE = 50;

/** Fires the deadlines whose time has come. Any number of instances may do so: a script fires each once. */
@Injectable()
export class DeadlineSweeper extends DueSweeper<DeadlineKeys> implements DueList<DeadlineKeys> {
  readonly what = 'deadlines';
  readonly #rules: FiringRules;
  /** The partitions where too many events wait. */
  readonly #full = new Set<DeadlineKeys>();

  constructor(
    @Inject(BACKGROUND_DEADLINE_SCRIPTS) private readonly scripts: Pick<DeadlineScripts, 'fire'>,
    @Inject(BackgroundLimiter) private readonly limiter: BackgroundLimiter,
    @Inject(DeadlinePartitions) partitions: DeadlinePartitions,
    @Inject(EVENT_RULES) { deadLetters }: ReturnType<typeof eventRules>,
    @Inject(REDIS_DEADLINE_OPTIONS) { events }: Pick<ResolvedRedisDeadlineOptions, 'events'>,
  ) {
    super();
    this.#rules = {
      batchSize: BATCH_SIZE,
      maxLength: partitions.shareOf(events.maxLength),
      knownFor: FIRED_KNOWN_FOR,
      maxDeadLetterSize: deadLetters.maxSize,
    };
  }

  async sweep(partitions: readonly DeadlineKeys[], tally: SweepCounter, options: SweepOptions): Promise<void> {
    for (const keys of partitions) {
      if (options.signal?.aborted) return;
      await this.claimIn(keys, tally, options).catch((error: unknown) => tally.failures.push(error));
    }
  }

  async claimIn(keys: DeadlineKeys, tally: SweepCounter, { signal }: SweepOptions): Promise<number | undefined> {
    while (!signal?.aborted) {
      const fired = await this.limiter.run(() => this.scripts.fire(keys, this.#rules), keys.prefix);
      for (const each of fired.entries) tally.count(keys, each.id, each, Number(each.time), fired.now);
      this.#tellOfBacklog(keys, fired.isFull);
      if (fired.isFull || fired.next !== 0) return fired.next;
    }
    return undefined;
  }

  /** Once, however many partitions have a backlog, until none has one any more. */
  #tellOfBacklog(keys: DeadlineKeys, isFull: boolean): void {
    if (isFull && this.#full.size === 0) {
      logger.error(
        'Deadlines wait longer than they should, because `events.maxLength` events wait for their groups: see DeadlineEvents.list()',
      );
    }
    if (isFull) this.#full.add(keys);
    else this.#full.delete(keys);
  }
}
