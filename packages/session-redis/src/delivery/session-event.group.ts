import type { Redis } from 'ioredis';
import { isReply } from '../connection/reply.errors.js';
import type { SessionKeys } from '../keys/session.keys.js';
import type { DeliveryScripts, GroupMember, RetryTimes, SettleReply } from '../scripts/delivery.scripts.js';
import type { EventStreamScripts } from '../scripts/event-stream.scripts.js';
import { type EventDelivery, toEventDelivery } from './event.delivery.js';
import { livenessOf } from './group.state.js';
import { groupOf, namesIn, parsed, sessionIdOf, type StreamEntry } from './stream-entry.js';

export interface GroupRules extends RetryTimes {
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

/** One instance's membership in a group of the events stream: each entry goes to one of the group's instances. */
export class SessionEventGroup {
  constructor(
    /** Waits for entries, and is used for nothing else meanwhile. */
    private readonly reader: Redis,
    private readonly scripts: DeliveryScripts,
    private readonly stream: EventStreamScripts,
    private readonly keys: SessionKeys,
    private readonly member: GroupMember,
    readonly rules: GroupRules,
  ) {}

  get name(): string {
    return this.member.group;
  }

  /** Creates the group if there is none, with the oldest event that is kept: nothing recorded before it is missed. */
  async ensure(): Promise<void> {
    await this.stream.createGroup(this.name, 'oldest');
  }

  /** Makes the handlers of this instance known; resolves to those of the last one if they are others and it may be alive. */
  async register(handlers: readonly string[]): Promise<readonly string[] | undefined> {
    const [word, names] = await this.scripts.registerHandlers(this.member, handlers, livenessOf(this.rules.lease));
    return word === 'differing' ? namesIn(parsed(names)) : undefined;
  }

  /** Up to `count` entries nobody has had; waits up to `patience` milliseconds for the first. */
  async read(count: number, patience: number): Promise<EventDelivery[]> {
    const { group, consumer } = this.member;
    const limits = ['COUNT', count, 'BLOCK', patience] as const;
    const reply = await this.#orCreated(() =>
      this.reader.xreadgroup(...(['GROUP', group, consumer, ...limits, 'STREAMS', this.keys.events, '>'] as const)),
    );
    const [stream] = (reply ?? []) as [key: string, entries: StreamEntry[]][];
    return (stream?.[1] ?? []).map((entry) => toEventDelivery(entry));
  }

  /** Up to `count` entries that are due to be tried again, or whose instance has not renewed its lease. */
  async takeOver(count: number): Promise<EventDelivery[]> {
    const taken = await this.#orCreated(() => this.scripts.takeOver(this.member, this.rules.lease, count));
    return (taken ?? []).map(([position, fields, deliveries, record]) =>
      toEventDelivery([position, fields], deliveries, record),
    );
  }

  /** Whether this group is to handle an entry; it has nothing to do with what was replayed for another one. */
  concerns(entry: StreamEntry): boolean {
    return (groupOf(entry) ?? this.name) === this.name;
  }

  async acknowledge([position]: StreamEntry): Promise<void> {
    await this.scripts.acknowledge(this.member, position);
  }

  /** Has an entry tried again later or, when it has failed too often, put among the dead letters. */
  fail(entry: StreamEntry, { done, reason, isFinal = false }: Failure): Promise<SettleReply> {
    const of = { position: entry[0], sessionId: sessionIdOf(entry) ?? '' };
    const attempts = isFinal ? 0 : this.rules.attempts;
    return this.scripts.fail(this.member, { ...of, done, reason, attempts }, this.rules);
  }

  /** Tells that this instance still works on entries. Those that another one has taken over stay its. */
  async renew(positions: readonly string[]): Promise<void> {
    if (positions.length > 0) await this.#orCreated(() => this.scripts.renewLease(this.member, positions));
  }

  /** Leaves the group, and what is not finished to its other instances; stays a member as long as it keeps something. */
  async leave(kept: readonly string[] = []): Promise<void> {
    await this.scripts.handOver(this.member, kept);
  }

  /** Undefined when there was no group: the stream was deleted, or Redis restarted without it. Then there is one now. */
  async #orCreated<T>(ask: () => Promise<T>): Promise<T | undefined> {
    try {
      return await ask();
    } catch (error) {
      if (!isReply(error, 'NOGROUP')) throw error;
      await this.ensure();
      return undefined;
    }
  }
}
