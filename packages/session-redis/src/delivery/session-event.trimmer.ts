import { Inject, Injectable } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { BACKGROUND_STREAM_SCRIPTS, EVENT_RULES } from '../configuration/redis-session.tokens.js';
import { InjectConnection } from '../connection/redis-connections.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import type { EventStreamScripts, TrimLimits } from '../scripts/stream/event-stream.scripts.js';
import { BackgroundLimiter } from '../timing/background.limiter.js';
import { consumerStates, groupStates, type GroupState, livenessOf, oldestUnread } from './group-state.js';
import { logger } from '../logging/redis-session.logger.js';

/** Limits for the whole namespace. */
export interface TrimmerOptions extends TrimLimits {
  /** Milliseconds. */
  readonly lease: number;
}

export interface TrimResult {
  /** Number of removed events. */
  readonly removed: number;
  /** By group, the number of removed events that it had not handled. */
  readonly dropped: ReadonlyMap<string, number>;
}

/** A call with 50 events blocks Redis for about half a millisecond. */
const BATCH_SIZE = 50;
/** Idle time after which a dead instance is removed. If it is alive after all, it joins its group again. */
const HOUR = 3_600_000;

/**
 * Trims the events streams, with the data of ended sessions: removes events that are older than the grace period and
 * that every group has handled, and all events beyond `events.retention` and `events.maxLength`. A group that nobody
 * reads for the retention is not waited for. Any number of instances may trim at once: scripts/stream/trim-events.lua
 * decides.
 */
@Injectable()
export class SessionEventTrimmer {
  /** The groups without a living instance, and what the log has said of them. */
  readonly #unread = new Map<string, 'kept' | 'dropped'>();

  constructor(
    @InjectConnection('background') private readonly client: Redis,
    @Inject(BACKGROUND_STREAM_SCRIPTS) private readonly scripts: EventStreamScripts,
    @Inject(SessionPartitions) private readonly partitions: SessionPartitions,
    @Inject(EVENT_RULES) private readonly options: TrimmerOptions,
    @Inject(BackgroundLimiter) private readonly limiter: BackgroundLimiter,
  ) {}

  /** One pass: trims, removes dead instances, and logs groups that nobody reads. */
  async runOnce({ signal }: { readonly signal?: AbortSignal } = {}): Promise<TrimResult> {
    const result = { removed: 0, dropped: new Map<string, number>() };
    for (const partition of this.partitions.all) await this.#trim(partition, result, signal);
    const groups = await groupStates(this.client, this.partitions.all);
    for (const group of groups) {
      if (!signal?.aborted) await this.#checkGroup(group);
    }
    for (const name of this.#unread.keys()) {
      if (!groups.some((group) => group.name === name)) this.#unread.delete(name);
    }
    for (const [group, count] of result.dropped) this.#reportDropped(group, count);
    return result;
  }

  async #trim(
    partition: SessionKeys,
    result: { removed: number; readonly dropped: Map<string, number> },
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const limits = { ...this.options, maxLength: this.partitions.shareOf(this.options.maxLength) };
    for (let word = 'more'; word === 'more' && !signal?.aborted;) {
      const [next, removed, dropped] = await this.limiter.run(() => this.scripts.trim(partition, limits, BATCH_SIZE));
      result.removed += removed;
      for (let i = 0; i < dropped.length; i += 2) {
        const group = String(dropped[i]);
        result.dropped.set(group, (result.dropped.get(group) ?? 0) + Number(dropped[i + 1]));
      }
      word = next;
    }
  }

  async #checkGroup(group: GroupState): Promise<void> {
    const { lease, grace } = this.options;
    const partitions = [...group.lastDelivered.keys()];
    const consumers = await consumerStates(this.client, partitions, group.name);
    for (const { name, idle } of consumers) {
      if (idle <= Math.max(HOUR, 2 * lease)) continue;
      await Promise.all(partitions.map((partition) => this.scripts.removeConsumer(partition, group.name, name)));
    }
    if (consumers.some(({ idle }) => idle < livenessOf(lease))) {
      if (this.#unread.delete(group.name))
        logger.log(`The events of group ${JSON.stringify(group.name)} are read again`);
      return;
    }
    const oldest = await oldestUnread(this.client, group);
    const [seconds] = await this.client.time();
    if (oldest === undefined || Number(seconds) * 1000 - oldest < grace || this.#unread.has(group.name)) return;
    this.#unread.set(group.name, 'kept');
    logger.warn(
      `Nobody reads the events of group ${JSON.stringify(group.name)}. They are kept up to \`events.retention\` and ` +
        '`events.maxLength`. If you no longer use the group, remove it with SessionEventGroups.remove()',
    );
  }

  #reportDropped(group: string, count: number): void {
    const known = this.#unread.get(group);
    if (known === 'dropped') return;
    if (known === 'kept') this.#unread.set(group, 'dropped');
    logger.warn(
      `${count} events were removed that group ${JSON.stringify(group)} had not handled: they were older than ` +
        '`events.retention`, or there were more than `events.maxLength`' +
        (known === 'kept' ? '. Further ones are only counted: see SessionEventGroups.list()' : ''),
    );
  }
}
