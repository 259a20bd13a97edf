import { Inject, Injectable } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { InjectConnection } from '../connection/redis-connections.js';
import { type PartitionKeys, Partitions } from '../partitions/partitions.js';
import { EventStreamScripts } from '../scripts/event-stream.scripts.js';
import { BackgroundLimiter } from '../timing/background.limiter.js';
import { DEAD_LETTER_BYTES, EVENT_RULES, type EventRules, type TrimLimits } from '../configuration/event-rules.js';
import { EventProducer } from './event-producer.js';
import {
  type AskPartition,
  consumerStates,
  type GroupState,
  groupStates,
  livenessOf,
  oldestUnread,
} from './group-states.js';
import { logger } from '../logging/failure.log.js';

/** Limits for the whole namespace, but those of the dead letters, which are for a partition. */
export type TrimmerOptions = TrimLimits &
  Pick<EventRules, 'lease'> & { readonly deadLetters: Pick<EventRules['deadLetters'], 'retention' | 'maxSize'> };

export class TrimCounter {
  removed = 0;
  readonly dropped = new Map<string, number>();
  readonly lost = new Map<string, number>();
}

/** A call with 50 events blocks Redis for about half a millisecond. */
const BATCH_SIZE = 50;
/** Each may have 256 KiB of data. */
const LETTERS_PER_CALL = 10;
/** Idle time after which a dead instance is removed. If it is alive after all, it joins its group again. */
const HOUR = 3_600_000;

/** Trims events and dead letters. Any number of instances may do so at once: the scripts decide what may go. */
@Injectable()
export class EventTrimmer {
  /** The groups without a living instance, and what the log has said of them. */
  readonly #unread = new Map<string, 'kept' | 'dropped'>();
  readonly #ask: AskPartition = (_, command) => command(this.client);

  constructor(
    @InjectConnection('background') private readonly client: Redis,
    @Inject(EventStreamScripts) private readonly scripts: EventStreamScripts,
    @Inject(Partitions) private readonly partitions: Partitions,
    @Inject(EVENT_RULES) private readonly options: TrimmerOptions,
    @Inject(BackgroundLimiter) private readonly limiter: BackgroundLimiter,
    @Inject(EventProducer) private readonly producer: Pick<EventProducer, 'groupsClass'>,
  ) {}

  async trim(partition: PartitionKeys, counter: TrimCounter, signal?: AbortSignal): Promise<void> {
    const limits = { ...this.options, maxLength: this.partitions.shareOf(this.options.maxLength) };
    await this.#repeat(partition, signal, async () => {
      const [word, removed, dropped] = await this.scripts.trim(partition, limits, BATCH_SIZE);
      counter.removed += removed;
      addTo(counter.dropped, dropped);
      return word;
    });
    await this.#repeat(partition, signal, async () => {
      const [word, lost] = await this.scripts.trimDeadLetters(partition, this.options.deadLetters, LETTERS_PER_CALL);
      addTo(counter.lost, lost);
      return word;
    });
  }

  report({ dropped, lost }: TrimCounter): void {
    for (const [group, count] of dropped) this.#reportDropped(group, count);
    for (const [group, count] of lost) this.#reportLost(group, count);
  }

  async checkGroups(signal?: AbortSignal): Promise<void> {
    const groups = await groupStates(this.#ask, this.partitions.all);
    for (const group of groups) {
      if (!signal?.aborted) await this.#checkGroup(group);
    }
    for (const name of this.#unread.keys()) {
      if (!groups.some((group) => group.name === name)) this.#unread.delete(name);
    }
  }

  async #repeat(partition: PartitionKeys, signal: AbortSignal | undefined, call: () => Promise<'done' | 'more'>) {
    for (let word = 'more'; word === 'more' && !signal?.aborted;) word = await this.limiter.run(call, partition.prefix);
  }

  async #checkGroup(group: GroupState): Promise<void> {
    const { lease, grace } = this.options;
    const partitions = [...group.lastDelivered.keys()];
    const consumers = await consumerStates(this.#ask, partitions, group.name);
    for (const { name, idle } of consumers) {
      if (idle <= Math.max(HOUR, 2 * lease)) continue;
      await Promise.all(partitions.map((partition) => this.scripts.removeConsumer(partition, group.name, name)));
    }
    if (consumers.some(({ idle }) => idle < livenessOf(lease))) {
      if (this.#unread.delete(group.name))
        logger.log(`The events of group ${JSON.stringify(group.name)} are read again`);
      return;
    }
    const oldest = await oldestUnread(this.#ask, group);
    const [seconds] = await this.client.time();
    if (oldest === undefined || Number(seconds) * 1000 - oldest < grace || this.#unread.has(group.name)) return;
    this.#unread.set(group.name, 'kept');
    logger.warn(
      `Nobody reads the events of group ${JSON.stringify(group.name)}. They are kept up to \`events.retention\` and ` +
        `\`events.maxLength\`. If you no longer use the group, remove it with ${this.producer.groupsClass}.remove()`,
    );
  }

  #reportDropped(group: string, count: number): void {
    const known = this.#unread.get(group);
    if (known === 'dropped') return;
    if (known === 'kept') this.#unread.set(group, 'dropped');
    logger.warn(
      `${count} events were removed that group ${JSON.stringify(group)} had not handled: they had waited for ` +
        '`events.retention`, or there were more than `events.maxLength`' +
        (known === 'kept' ? `. Further ones are only counted: see ${this.producer.groupsClass}.list()` : ''),
    );
  }

  #reportLost(group: string, count: number): void {
    const whose = group === '' ? 'stray keys or members' : `group ${JSON.stringify(group)}`;
    logger.warn(
      `${count} dead letters of ${whose} were removed: they were older than \`events.deadLetters.retention\`, or all took ` +
        `more than ${DEAD_LETTER_BYTES / 2 ** 20} MiB. Replay or discard dead letters in time, with ` +
        this.producer.groupsClass,
    );
  }
}

function addTo(totals: Map<string, number>, counts: readonly (string | number)[]): void {
  for (let i = 0; i < counts.length; i += 2) {
    const group = String(counts[i]);
    totals.set(group, (totals.get(group) ?? 0) + Number(counts[i + 1]));
  }
}
