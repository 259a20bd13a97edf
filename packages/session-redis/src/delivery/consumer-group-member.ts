import { Inject, Injectable } from '@nestjs/common';
import { BACKGROUND_STREAM_SCRIPTS, CONSUMER_IDENTITY, EVENT_RULES } from '../configuration/redis-session.tokens.js';
import { isReply } from '../connection/reply.errors.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import {
  type ConsumerIdentity,
  DeliveryScripts,
  type RetryRules,
  type SettleReply,
} from '../scripts/delivery/delivery.scripts.js';
import type { EventStreamScripts } from '../scripts/stream/event-stream.scripts.js';
import { type PendingEvent, toPendingEvent } from './pending-event.js';
import { livenessOf } from './group-state.js';
import { PartitionRoundRobin } from './partition-round-robin.js';
import { groupOf, namesIn, parsed, sessionIdOf, type StreamEntry, toStreamEntry } from './stream-entry.js';
import { UnreadEventReader } from './unread-event.reader.js';

export interface GroupRules extends RetryRules {
  /** Milliseconds without a renewal after which an entry is taken over. */
  readonly lease: number;
  /** How often an entry may fail before it becomes a dead letter. */
  readonly attempts: number;
}

export interface Failure {
  /** The names of the handlers that have succeeded, at this and at former attempts. */
  readonly done: readonly string[];
  readonly reason: string;
  /** Whether it is not worth another attempt. */
  readonly isFinal?: boolean;
}

/**
 * One instance's membership in a group: each entry of the events streams goes to one of the group's instances. It is a
 * member in every partition.
 */
@Injectable()
export class ConsumerGroupMember {
  readonly #turns: PartitionRoundRobin;

  constructor(
    @Inject(UnreadEventReader) private readonly unread: UnreadEventReader,
    @Inject(DeliveryScripts) private readonly scripts: DeliveryScripts,
    @Inject(BACKGROUND_STREAM_SCRIPTS) private readonly streams: EventStreamScripts,
    @Inject(SessionPartitions) private readonly partitions: SessionPartitions,
    @Inject(CONSUMER_IDENTITY) private readonly member: ConsumerIdentity,
    @Inject(EVENT_RULES) readonly rules: GroupRules,
  ) {
    this.#turns = new PartitionRoundRobin(partitions.all);
  }

  get name(): string {
    return this.member.group;
  }

  /** Creates the group where there is none, with the oldest event that is kept: nothing recorded before it is missed. */
  async ensure(partitions = this.partitions.all): Promise<void> {
    await Promise.all(partitions.map((partition) => this.streams.createGroup(partition, this.name, 'oldest')));
  }

  /** Makes the handlers of this instance known; resolves to those of the last one if they are others and it may be alive. */
  async register(handlers: readonly string[]): Promise<readonly string[] | undefined> {
    // One partition is enough: whoever is a member in one is in all.
    const [first] = this.partitions.all;
    const liveness = livenessOf(this.rules.lease);
    const [word, names] = await this.scripts.registerHandlers(first!, this.member, handlers, liveness);
    return word === 'differing' ? namesIn(parsed(names)) : undefined;
  }

  /** Up to `count` entries nobody has had; waits up to `patience` milliseconds for the first. */
  async read(count: number, patience: number): Promise<PendingEvent[]> {
    const entries = await this.#orCreated(this.partitions.all, () => this.unread.read(count, patience));
    return (entries ?? []).map((entry) => toPendingEvent(entry));
  }

  /**
   * Up to `count` entries that are due to be tried again, or whose instance has not renewed its lease. Once it is aborted
   * it asks no more: that would make this instance a member again of the group that it has left.
   */
  async claimEvents(count: number, signal: AbortSignal): Promise<PendingEvent[]> {
    const { all } = this.partitions;
    const left = new Set(await this.#orCreated(all, () => this.scripts.unfinishedIn(all, this.member)));
    const taken: PendingEvent[] = [];
    while (left.size > 0 && taken.length < count && !signal.aborted) {
      const free = count - taken.length;
      const turn = this.#turns.next(free, left);
      const share = Math.floor(free / turn.length);
      const deliveries = await Promise.all(turn.map((partition) => this.#takeOverIn(partition, share)));
      taken.push(...deliveries.flat());
      for (const partition of turn) left.delete(partition);
    }
    return taken;
  }

  /** Whether this group is to handle an entry; it has nothing to do with what was replayed for another one. */
  concerns(entry: StreamEntry): boolean {
    return (groupOf(entry) ?? this.name) === this.name;
  }

  async acknowledge({ partition, position }: StreamEntry): Promise<void> {
    await this.scripts.acknowledge(partition, this.member, position);
  }

  /** Has an entry tried again later or, when it has failed too often, put among the dead letters. */
  fail(entry: StreamEntry, { done, reason, isFinal = false }: Failure): Promise<SettleReply> {
    const of = { position: entry.position, sessionId: sessionIdOf(entry) ?? '' };
    const attempts = isFinal ? 0 : this.rules.attempts;
    return this.scripts.fail(entry.partition, this.member, { ...of, done, reason, attempts }, this.rules);
  }

  /** Tells that this instance still works on entries. Those that another one has taken over stay its. */
  async renew(entries: readonly StreamEntry[]): Promise<void> {
    await Promise.all(
      this.partitions.all.map(async (partition) => {
        const positions = positionsIn(partition, entries);
        if (positions.length === 0) return;
        await this.#orCreated([partition], () => this.scripts.renewLease(partition, this.member, positions));
      }),
    );
  }

  /** Leaves the group, and what is not finished to its other instances; stays a member as long as it keeps something. */
  async leave(kept: readonly StreamEntry[] = []): Promise<void> {
    await Promise.all(
      this.partitions.all.map((partition) =>
        this.scripts.releaseEvents(partition, this.member, positionsIn(partition, kept)),
      ),
    );
  }

  async #takeOverIn(partition: SessionKeys, count: number): Promise<PendingEvent[]> {
    const { lease } = this.rules;
    const taken = await this.#orCreated([partition], () =>
      this.scripts.claimEvents(partition, this.member, lease, count),
    );
    return (taken ?? []).map(([position, fields, deliveries, record]) =>
      toPendingEvent(toStreamEntry(partition, [position, fields]), deliveries, record),
    );
  }

  /** Undefined when there was no group: a stream was deleted, or Redis restarted without it. Then there is one now. */
  async #orCreated<T>(partitions: readonly SessionKeys[], ask: () => Promise<T>): Promise<T | undefined> {
    try {
      return await ask();
    } catch (error) {
      if (!isReply(error, 'NOGROUP')) throw error;
      await this.ensure(partitions);
      return undefined;
    }
  }
}

function positionsIn(partition: SessionKeys, entries: readonly StreamEntry[]): string[] {
  return entries.filter((entry) => entry.partition === partition).map(({ position }) => position);
}
