import { Inject, Injectable } from '@nestjs/common';
import { shownError } from '@nest-session/core/internal';
import { PollingLoop } from '@nest-session/core/store';
import type { Redis } from 'ioredis';
import { type PartitionKeys, Partitions } from '../partitions/partitions.js';
import { logger } from '../logging/failure.log.js';
import { isUnexpectedReply } from './outage.log.js';
import { InjectConnection } from './redis-connections.js';
import type { RedisNodes } from './redis-nodes.js';
import { isReply } from './server-faults.js';

/** `events`; `retries`: some may be due; `end 500`: in so many ms; `missed`: others may be; those of producers. */
export type Signal = string;

// Milliseconds. A heartbeat confirms that the signals are heard.
const HEARTBEAT = 1000;
// Milliseconds. A user of Redis may get the right meanwhile.
const AFTER_REFUSAL = 60_000;

/** Hears the signals of all partitions, on sharded channels: hints on top of polls. A single partition has none. */
@Injectable()
export class PartitionSignals<Keys extends PartitionKeys = PartitionKeys> {
  readonly #partitions: readonly Keys[];
  readonly #partitionOf: ReadonlyMap<string, Keys>;
  /** By partition: where its signals are heard, and since when: monotonic time. Infinity: not yet. */
  readonly #heard = new Map<Keys, { readonly client: Redis; since: number }>();
  readonly #listeners: ((partition: Keys, signal: Signal) => void)[] = [];
  readonly #confirmations: ((partitions: readonly Keys[], since: number) => void)[] = [];
  readonly #beats = new PollingLoop('The heartbeat of signals', HEARTBEAT, async () => this.#beat());
  #triesAt = 0;
  #hasWarned = false;

  constructor(
    @InjectConnection('signals') private readonly nodes: RedisNodes,
    @Inject(Partitions) { all }: Partitions<Keys>,
  ) {
    this.#partitions = all.filter(({ hasSignals }) => hasSignals);
    this.#partitionOf = new Map(this.#partitions.map((partition) => [partition.events, partition]));
  }

  onSignal(listener: (partition: Keys, signal: Signal) => void): void {
    this.#listeners.push(listener);
  }

  /** About once a second: of these partitions, all signals sent before `since`, a monotonic time, have been heard. */
  onConfirmation(listener: (partitions: readonly Keys[], since: number) => void): void {
    this.#confirmations.push(listener);
  }

  /** Since when all signals of a partition are heard: monotonic time. Infinity: they are not. */
  heardSince(partition: Keys): number {
    return this.#heard.get(partition)?.since ?? Infinity;
  }

  start(): void {
    if (this.#partitions.length === 0) return;
    this.nodes.onOpen((client) => this.#follow(client));
    this.nodes.onChange(() => this.#subscribe());
    this.#beats.start();
    this.nodes.connect().catch(() => undefined);
  }

  async stop(): Promise<void> {
    this.#listeners.length = 0;
    this.#confirmations.length = 0;
    await Promise.all([this.#beats.stop(), this.nodes.close()]);
  }

  #follow(client: Redis): void {
    client
      .on('smessage', (channel: string, message: string) => {
        const partition = this.#partitionOf.get(channel);
        if (partition) this.#tell(partition, message);
      })
      .on('ready', () => {
        this.#triesAt = 0;
        this.#subscribe();
      })
      .on('close', () => this.#forget(client))
      // The node has lost a slot, and with it the subscriptions there.
      .on('moved', () => this.#lose(client))
      // ioredis 5 takes the same news for the reply to a command that it has not sent.
      .on('error', (error: Error) => {
        if (isUnexpectedReply(error)) client.disconnect(true);
      });
    if (client.status === 'ready') this.#subscribe();
  }

  #tell(partition: Keys, signal: Signal): void {
    for (const listener of this.#listeners) listener(partition, signal);
  }

  #forget(client: Redis): void {
    for (const [partition, heard] of this.#heard) if (heard.client === client) this.#heard.delete(partition);
  }

  #lose(client: Redis): void {
    this.#forget(client);
    this.nodes.refresh();
  }

  #subscribe(): void {
    if (performance.now() < this.#triesAt) return;
    for (const partition of this.#partitions) {
      const node = this.nodes.of(partition.events);
      if (node !== undefined && node === this.#heard.get(partition)?.client) continue;
      this.#heard.delete(partition);
      if (node?.status === 'ready') void this.#subscribeTo(partition, node);
    }
  }

  async #subscribeTo(partition: Keys, node: Redis): Promise<void> {
    const heard = { client: node, since: Infinity };
    this.#heard.set(partition, heard);
    try {
      await node.ssubscribe(partition.events);
    } catch (error) {
      if (this.#heard.get(partition) === heard) this.#heard.delete(partition);
      return this.#refused(error);
    }
    // The connection was lost meanwhile, or another node has the partition now.
    if (this.#heard.get(partition) !== heard) return;
    this.#hasWarned = false;
    heard.since = performance.now();
    this.#tell(partition, 'missed');
  }

  #refused(error: unknown): void {
    if (isReply(error, 'MOVED')) return this.nodes.refresh();
    if (!(isReply(error, 'NOPERM') || isReply(error, 'ERR'))) return;
    this.#triesAt = performance.now() + AFTER_REFUSAL;
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    logger.warn(
      `New events are noticed later: this instance cannot subscribe to the channels of the partitions: ${shownError(error)}`,
    );
  }

  #beat(): void {
    this.#subscribe();
    const heard = [...this.#heard.values()].filter(({ since }) => since < Infinity);
    for (const client of new Set(heard.map((each) => each.client))) void this.#confirm(client);
  }

  /** What was sent before the reply to this PING has arrived before it. */
  async #confirm(client: Redis): Promise<void> {
    const since = performance.now();
    const isHeard = (each: Keys) => this.#heard.get(each)?.client === client && this.heardSince(each) < Infinity;
    const heard = this.#partitions.filter(isHeard);
    try {
      await client.ping();
    } catch {
      return;
    }
    // While a PING has no reply, ioredis 5 does not tell that the node has lost a slot.
    const channels = client.condition?.subscriber ? client.condition.subscriber.channels('ssubscribe') : [];
    if (!heard.every((partition) => channels.includes(partition.events))) return this.#lose(client);
    const confirmed = heard.filter((partition) => this.heardSince(partition) <= since);
    for (const listener of this.#confirmations) listener(confirmed, since);
  }
}
