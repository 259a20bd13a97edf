import { Injectable } from '@nestjs/common';
import type { SessionEventType } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import { InjectConnection } from '../../connection/redis-connections.js';
import type { SessionKeys } from '../../keys/session-keys.js';
import { defineScripts, loadScripts, type ScriptedRedis } from '../define-scripts.js';

/** An instance as a consumer in its group. */
export interface ConsumerIdentity {
  readonly group: string;
  /** The name of the instance, unique. */
  readonly consumer: string;
}

export type ClaimedEntry = [
  position: string,
  fields: string[],
  /** The number of earlier deliveries. */
  deliveries: number,
  /** JSON of `attempts` and `done`, if it has failed. */
  record: string | null,
];

export interface EntryFailure {
  readonly position: string;
  readonly sessionId: string;
  /** The names of the handlers that have succeeded, in all attempts. */
  readonly done: readonly string[];
  readonly reason: string;
  /** The name of the first handler that failed; undefined when instances died over the entry. */
  readonly handler?: string | undefined;
  /** After this many failures it becomes a dead letter. */
  readonly attempts: number;
}

/** The handlers of an instance for its group. */
export interface RegisteredHandlers {
  readonly names: readonly string[];
  /** The types of the events that they want. */
  readonly types: readonly SessionEventType[];
}

/** How failed entries are retried. */
export interface RetryRules {
  /** Milliseconds before the second attempt; doubles with each attempt. */
  readonly firstBackOff: number;
  /** Milliseconds. */
  readonly longestBackOff: number;
  /** Milliseconds for which the data of an ended session is kept after a failure. */
  readonly retention: number;
  readonly deadLetters: {
    /** Most bytes of the dead letters of a partition. */
    readonly maxSize: number;
    /** Most bytes of the data in a dead letter; larger data is left out. */
    readonly maxDataSize: number;
  };
}

export type RegisterReply = ['registered'] | ['differing', names: string];
export type WishReply = 'renewed' | 'begun';
export type WantReply = 'wanted';
export type AcknowledgeReply = 'acknowledged';
export type FailReply = 'retry' | 'dead' | 'lost';
export type RenewReply = 'renewed' | 'lost';
export type ReleaseReply = 'left' | 'staying';

/** A position after all entries; see note_instance() in scripts/includes/stream.lua. */
const BEHIND_ALL = '18446744073709551614-0';

const SOURCES = loadScripts('delivery', {
  registerHandlers: 'register-handlers',
  wantBroadcast: 'want-broadcast',
  wantEvents: 'want-events',
  claimEvents: 'claim-events',
  acknowledgeEvents: 'acknowledge-events',
  retryOrDeadLetter: 'retry-or-dead-letter',
  renewLease: 'renew-lease',
  releaseEvents: 'release-events',
});

/** The scripts for instances that handle events. Each is one typed function, and each call is for one partition. */
@Injectable()
export class DeliveryScripts {
  readonly #client: ScriptedRedis<keyof typeof SOURCES>;

  constructor(@InjectConnection('background') client: Redis) {
    this.#client = defineScripts(client, SOURCES);
  }

  /** `liveness`: the idle time in milliseconds below which an instance is alive. */
  async registerHandlers(
    { events, handlers, wanted }: SessionKeys,
    { group, consumer }: ConsumerIdentity,
    { names, types }: RegisteredHandlers,
    liveness: number,
  ): Promise<RegisterReply> {
    const keys = [events, handlers, wanted];
    const args = [group, consumer, liveness, JSON.stringify(names), types.join(' ')];
    return (await this.#client.registerHandlers(keys.length, ...keys, ...args)) as RegisterReply;
  }

  /** From now on a group wants events of these types as well. */
  async wantEvents(
    { wanted }: SessionKeys,
    { group }: ConsumerIdentity,
    types: readonly SessionEventType[],
  ): Promise<WantReply> {
    return (await this.#client.wantEvents(1, wanted, group, ...types)) as WantReply;
  }

  /** An instance without handlers: its group wants no events, unless another instance has told otherwise. */
  async abstain({ wanted }: SessionKeys, { group }: ConsumerIdentity): Promise<void> {
    await this.#client.hsetnx(wanted, group, '');
  }

  /** For the next milliseconds broadcast handlers want events of these types. `begun`: they did not until now. */
  async wantBroadcast(
    partition: SessionKeys,
    types: readonly SessionEventType[],
    milliseconds: number,
  ): Promise<WishReply[]> {
    const keys = types.map((type) => partition.broadcastWanted(type));
    return (await this.#client.wantBroadcast(keys.length, ...keys, milliseconds)) as WishReply[];
  }

  /**
   * Whether events of a group are pending, which may be due. It also notes that this instance is alive. Plain commands
   * instead of a script: cheap when nothing is pending.
   */
  async hasPending({ events }: SessionKeys, { group, consumer }: ConsumerIdentity): Promise<boolean> {
    const [[count]] = await Promise.all([
      this.#client.xpending(events, group),
      this.#client
        .xreadgroup('GROUP', group, consumer, 'COUNT', 1, 'STREAMS', events, BEHIND_ALL)
        // The reply to the other command says what is wrong.
        .catch(() => null),
    ]);
    return Number(count) > 0;
  }

  /** `lease`: milliseconds. */
  async claimEvents(
    partition: SessionKeys,
    { group, consumer }: ConsumerIdentity,
    lease: number,
    limit: number,
  ): Promise<ClaimedEntry[]> {
    const keys = [partition.events, partition.failing(group), partition.retries(group)];
    return (await this.#client.claimEvents(keys.length, ...keys, group, consumer, lease, limit)) as ClaimedEntry[];
  }

  /** All handlers of these entries have succeeded. */
  async acknowledge(
    partition: SessionKeys,
    { group }: ConsumerIdentity,
    positions: readonly string[],
  ): Promise<AcknowledgeReply> {
    const keys = [partition.events, partition.failing(group), partition.retries(group)];
    return (await this.#client.acknowledgeEvents(keys.length, ...keys, group, ...positions)) as AcknowledgeReply;
  }

  /** Handlers of an entry have failed: schedules its retry, or makes it a dead letter. */
  async fail(
    partition: SessionKeys,
    { group, consumer }: ConsumerIdentity,
    failure: EntryFailure,
    rules: RetryRules,
  ): Promise<FailReply> {
    const { position, sessionId, done, reason, attempts, handler = '' } = failure;
    const { events, deadLetters } = partition;
    const ofGroup = [partition.failing(group), partition.retries(group)];
    const keys = [events, ...ofGroup, deadLetters, partition.session(sessionId)];
    const times = [rules.firstBackOff, rules.longestBackOff, rules.retention];
    const { maxSize, maxDataSize } = rules.deadLetters;
    const args = [group, consumer, position, JSON.stringify(done), reason, attempts];
    args.push(...times, maxSize, maxDataSize, handler);
    return (await this.#client.retryOrDeadLetter(keys.length, ...keys, ...args)) as FailReply;
  }

  async renewLease(
    { events }: SessionKeys,
    { group, consumer }: ConsumerIdentity,
    positions: readonly string[],
  ): Promise<RenewReply[]> {
    return (await this.#client.renewLease(1, events, group, consumer, ...positions)) as RenewReply[];
  }

  /** `kept`: the positions of the entries that the instance still handles. */
  async releaseEvents(
    partition: SessionKeys,
    { group, consumer }: ConsumerIdentity,
    kept: readonly string[],
  ): Promise<ReleaseReply> {
    const keys = [partition.events, partition.retries(group)];
    return (await this.#client.releaseEvents(keys.length, ...keys, group, consumer, ...kept)) as ReleaseReply;
  }
}
