import { Inject, Injectable } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { BACKGROUND_STREAM_SCRIPTS, EVENT_RULES } from '../configuration/redis-session.tokens.js';
import { InjectConnection } from '../connection/redis-connections.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import type { EventStreamScripts, TrimLimits } from '../scripts/stream/event-stream.scripts.js';
import { consumerStates, groupStates, type GroupState, livenessOf, oldestUnread } from './group-state.js';
import { logger } from '../logging/redis-session.logger.js';

/** Of the whole namespace. */
export interface TrimmerOptions extends TrimLimits {
  /** Milliseconds, as all times here. */
  readonly lease: number;
}

export interface TrimResult {
  /** How many events were removed. */
  readonly removed: number;
  /** How many of them a group had not handled, by its name. */
  readonly dropped: ReadonlyMap<string, number>;
}

/** A call of 100 keeps Redis busy for about a millisecond. */
const BATCH_SIZE = 100;
/** After which an instance that asks for nothing is gone for good; one that is not joins its group again. */
const HOUR = 3_600_000;

/**
 * Keeps the events streams small: removes what all groups have handled, and what is too old or too many, with the data of
 * the sessions that ended. Any number of instances may trim at a time: a script decides what goes.
 */
@Injectable()
export class SessionEventTrimmer {
  /** The groups that nobody reads, and what has been said of them. */
  readonly #unread = new Map<string, 'kept' | 'dropped'>();

  constructor(
    @InjectConnection('background') private readonly client: Redis,
    @Inject(BACKGROUND_STREAM_SCRIPTS) private readonly scripts: EventStreamScripts,
    @Inject(SessionPartitions) private readonly partitions: SessionPartitions,
    @Inject(EVENT_RULES) private readonly options: TrimmerOptions,
  ) {}

  /** One pass: trims, forgets instances that are gone, and tells of groups that nobody reads. */
  async runOnce({ signal }: { readonly signal?: AbortSignal } = {}): Promise<TrimResult> {
    const result = { removed: 0, dropped: new Map<string, number>() };
    for (const partition of this.partitions.all) await this.#trim(partition, result, signal);
    const groups = await groupStates(this.client, this.partitions.all);
    for (const group of groups) {
      if (!signal?.aborted) await this.#lookAfter(group);
    }
    for (const name of this.#unread.keys()) {
      if (!groups.some((group) => group.name === name)) this.#unread.delete(name);
    }
    for (const [group, count] of result.dropped) this.#tellDropped(group, count);
    return result;
  }

  async #trim(
    partition: SessionKeys,
    result: { removed: number; readonly dropped: Map<string, number> },
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const limits = { ...this.options, maxLength: this.partitions.shareOf(this.options.maxLength) };
    for (let word = 'more'; word === 'more' && !signal?.aborted;) {
      const [next, removed, dropped] = await this.scripts.trim(partition, limits, BATCH_SIZE);
      result.removed += removed;
      for (let i = 0; i < dropped.length; i += 2) {
        const group = String(dropped[i]);
        result.dropped.set(group, (result.dropped.get(group) ?? 0) + Number(dropped[i + 1]));
      }
      word = next;
    }
  }

  async #lookAfter(group: GroupState): Promise<void> {
    const { lease, grace } = this.options;
    const partitions = [...group.lastDelivered.keys()];
    const consumers = await consumerStates(this.client, partitions, group.name);
    for (const { name, idle } of consumers) {
      if (idle <= Math.max(HOUR, 2 * lease)) continue;
      await Promise.all(partitions.map((partition) => this.scripts.removeConsumer(partition, group.name, name)));
    }
    if (consumers.some(({ idle }) => idle < livenessOf(lease))) {
      if (this.#unread.delete(group.name)) logger.log(`The events of group "${group.name}" are read again`);
      return;
    }
    const oldest = await oldestUnread(this.client, group);
    const [seconds] = await this.client.time();
    if (oldest === undefined || Number(seconds) * 1000 - oldest < grace || this.#unread.has(group.name)) return;
    this.#unread.set(group.name, 'kept');
    logger.warn(
      `Nobody reads the events of group "${group.name}". They are kept for it, up to \`events.retention\` and ` +
        '`events.maxLength`. If the group is not used any more, remove it with SessionEventGroups',
    );
  }

  #tellDropped(group: string, count: number): void {
    const known = this.#unread.get(group);
    if (known === 'dropped') return;
    if (known === 'kept') this.#unread.set(group, 'dropped');
    logger.warn(
      `${count} events were removed that group "${group}" had not handled: they were older than ` +
        '`events.retention`, or there were more than `events.maxLength`' +
        (known === 'kept' ? '. Further ones are only counted, for SessionEventGroups.list()' : ''),
    );
  }
}
