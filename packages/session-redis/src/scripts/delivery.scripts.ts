import type { Redis } from 'ioredis';
import type { SessionKeys } from '../keys/session.keys.js';
import { loadScript } from './script.loader.js';

/** An instance as a member of a group of the events stream. */
export interface GroupMember {
  readonly group: string;
  /** The name of the instance, unique. */
  readonly consumer: string;
}

export type TakenEntry = [
  position: string,
  fields: string[],
  /** How often it was delivered before. */
  deliveries: number,
  /** JSON of `attempts` and `done`, if it has failed before. */
  record: string | null,
];

export interface EntryFailure {
  readonly position: string;
  readonly sessionId: string;
  /** The names of the handlers that have succeeded, at this and at former attempts. */
  readonly done: readonly string[];
  readonly reason: string;
  /** The number of failures that makes it a dead letter. */
  readonly attempts: number;
}

/** When what has failed is tried again, and how long its data is kept for that, in milliseconds; and what comes of it. */
export interface RetryRules {
  readonly firstBackOff: number;
  readonly longestBackOff: number;
  readonly retention: number;
  /** How many dead letters of a partition are kept, about. */
  readonly deadLetters: number;
}

export type RegisterReply = ['registered'] | ['differing', names: string];
export type SettleReply = 'acknowledged' | 'retry' | 'dead' | 'lost';
export type RenewReply = 'renewed' | 'lost';
export type HandOverReply = 'left' | 'staying';

type Run = (numberOfKeys: number, ...keysAndArguments: (string | number)[]) => Promise<unknown>;

/** See note_instance() in scripts/includes/stream.lua. */
const BEHIND_ALL = '18446744073709551614-0';

const SOURCES = {
  registerHandlers: loadScript('register-handlers'),
  takeOver: loadScript('take-over'),
  settleEvent: loadScript('settle-event'),
  renewLease: loadScript('renew-lease'),
  handOver: loadScript('hand-over'),
};

/** The scripts of instances that handle events, on one connection: one typed function each, for one partition a call. */
export class DeliveryScripts {
  readonly #client: Redis & Record<keyof typeof SOURCES, Run>;

  constructor(client: Redis) {
    for (const [name, lua] of Object.entries(SOURCES)) client.defineCommand(name, { lua });
    this.#client = client as Redis & Record<keyof typeof SOURCES, Run>;
  }

  /** `liveness`: an instance that has asked for events within so many milliseconds is at work. */
  async registerHandlers(
    { events, handlers }: SessionKeys,
    { group, consumer }: GroupMember,
    names: readonly string[],
    liveness: number,
  ): Promise<RegisterReply> {
    const keys = [events, handlers];
    const args = [group, consumer, liveness, JSON.stringify(names)];
    return (await this.#client.registerHandlers(keys.length, ...keys, ...args)) as RegisterReply;
  }

  /**
   * The partitions in which events are pending in a group, and so may be due to be taken over. Whoever asks is at work.
   * No script, so that it is one round trip for all partitions, and cheap when there are none.
   */
  async unfinishedIn(partitions: readonly SessionKeys[], { group, consumer }: GroupMember): Promise<SessionKeys[]> {
    const pipeline = this.#client.pipeline();
    for (const { events } of partitions) {
      pipeline.xreadgroup('GROUP', group, consumer, 'COUNT', 1, 'STREAMS', events, BEHIND_ALL);
      pipeline.xpending(events, group);
    }
    const replies = (await pipeline.exec()) ?? [];
    return partitions.filter((_, i) => {
      const [error, summary] = replies[2 * i + 1]!;
      if (error) throw error;
      return Number((summary as unknown[])[0]) > 0;
    });
  }

  /** `lease`: milliseconds. */
  async takeOver(
    partition: SessionKeys,
    { group, consumer }: GroupMember,
    lease: number,
    limit: number,
  ): Promise<TakenEntry[]> {
    const keys = [partition.events, partition.failing(group), partition.retries(group)];
    return (await this.#client.takeOver(keys.length, ...keys, group, consumer, lease, limit)) as TakenEntry[];
  }

  /** All handlers of an entry have succeeded. */
  acknowledge(partition: SessionKeys, member: GroupMember, position: string): Promise<SettleReply> {
    return this.#settle(partition, member, position, '', ['done']);
  }

  fail(partition: SessionKeys, member: GroupMember, failure: EntryFailure, rules: RetryRules): Promise<SettleReply> {
    const { position, sessionId, done, reason, attempts } = failure;
    const { firstBackOff, longestBackOff, retention, deadLetters } = rules;
    const times = [firstBackOff, longestBackOff, retention];
    const args = ['failed', JSON.stringify(done), reason, attempts, ...times, deadLetters];
    return this.#settle(partition, member, position, sessionId, args);
  }

  async renewLease(
    { events }: SessionKeys,
    { group, consumer }: GroupMember,
    positions: readonly string[],
  ): Promise<RenewReply[]> {
    return (await this.#client.renewLease(1, events, group, consumer, ...positions)) as RenewReply[];
  }

  /** `kept`: the positions that the instance is still working on. */
  async handOver(
    partition: SessionKeys,
    { group, consumer }: GroupMember,
    kept: readonly string[],
  ): Promise<HandOverReply> {
    const keys = [partition.events, partition.retries(group)];
    return (await this.#client.handOver(keys.length, ...keys, group, consumer, ...kept)) as HandOverReply;
  }

  async #settle(
    partition: SessionKeys,
    { group, consumer }: GroupMember,
    position: string,
    sessionId: string,
    args: readonly (string | number)[],
  ): Promise<SettleReply> {
    const { events, deadLetters } = partition;
    const ofGroup = [partition.failing(group), partition.retries(group)];
    const keys = [events, ...ofGroup, deadLetters, partition.session(sessionId)];
    return (await this.#client.settleEvent(keys.length, ...keys, group, consumer, position, ...args)) as SettleReply;
  }
}
