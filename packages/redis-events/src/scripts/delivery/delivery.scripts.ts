import type { Redis } from 'ioredis';
import type { PartitionKeys } from '../../partitions/partitions.js';
import type { EventRules, RetryRules } from '../event-rules.js';
import { defineScripts, loadScripts, type ScriptsByName } from '../define-scripts.js';
import { LUA_SOURCES } from '../lua-sources.js';
import { dataKeyOf, type EntryKind, type StreamEntry } from '../stream/stream-entry.js';

/** An instance as a consumer in its group. */
export interface ConsumerIdentity {
  readonly group: string;
  /** The name of the instance, unique. */
  readonly consumer: string;
}

export type PickedUpEntry = [
  position: string,
  fields: string[],
  /** The number of earlier deliveries. */
  deliveries: number,
  /** JSON of `attempts` and `done`, if it has failed. */
  record: string | null,
];

export interface EntryFailure {
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
  readonly types: readonly string[];
}

export type RegisterReply = ['registered'] | ['differing', names: string];
export type WishReply = 'renewed' | 'begun';
export type WantReply = 'wanted';
export type AcknowledgeReply = 'acknowledged';
export type FailReply = 'retry' | 'dead' | 'lost';
/** Whether other instances of the group take over an event for which this one has no handler. */
export type PassOnReply = 'passed' | 'unwanted' | 'lost';
export type RenewReply = 'renewed' | 'lost';
export type ReleaseReply = 'left' | 'staying';

/** A position after all entries; see note_instance() in scripts/library/groups.lua. */
const BEHIND_ALL = '18446744073709551614-0';

const SOURCES = loadScripts(LUA_SOURCES, 'delivery', {
  registerHandlers: 'register-handlers',
  wantBroadcast: 'want-broadcast',
  wantEvents: 'want-events',
  pickUpEvents: 'pick-up-events',
  acknowledgeEvents: 'acknowledge-events',
  retryOrDeadLetter: 'retry-or-dead-letter',
  passOnEvent: 'pass-on-event',
  renewLease: 'renew-lease',
  releaseEvents: 'release-events',
});

/** The scripts for instances that handle events. Each is one typed function, and each call is for one partition. */
export class DeliveryScripts {
  readonly #scripts: ScriptsByName<keyof typeof SOURCES>;

  constructor(
    private readonly client: Redis,
    private readonly kind: EntryKind,
  ) {
    this.#scripts = defineScripts(client, SOURCES);
  }

  /** `liveness`: the idle time in milliseconds below which an instance is alive. */
  async registerHandlers(
    { events, handlers, wanted }: PartitionKeys,
    { group, consumer }: ConsumerIdentity,
    { names, types }: RegisteredHandlers,
    liveness: number,
  ): Promise<RegisterReply> {
    const keys = [events, handlers, wanted];
    const args = [group, consumer, liveness, JSON.stringify(names), types.join(' ')];
    return (await this.#scripts.registerHandlers(keys.length, ...keys, ...args)) as RegisterReply;
  }

  /** From now on a group wants events of these types as well. */
  async wantEvents(
    { wanted }: PartitionKeys,
    { group }: ConsumerIdentity,
    types: readonly string[],
  ): Promise<WantReply> {
    return (await this.#scripts.wantEvents(1, wanted, group, ...types)) as WantReply;
  }

  /** An instance without handlers: its group wants no events, unless another instance has told otherwise. */
  async abstain({ wanted }: PartitionKeys, { group }: ConsumerIdentity): Promise<void> {
    await this.client.hsetnx(wanted, group, '');
  }

  /** For the next milliseconds broadcast handlers want events of these types. `begun`: they did not until now. */
  async wantBroadcast(partition: PartitionKeys, types: readonly string[], milliseconds: number): Promise<WishReply[]> {
    const keys = types.map((type) => partition.broadcastWanted(type));
    return (await this.#scripts.wantBroadcast(keys.length, ...keys, milliseconds)) as WishReply[];
  }

  /**
   * Whether events of a group are pending, which may be due. It also notes that this instance is alive. Plain commands
   * instead of a script: cheap when nothing is pending.
   */
  async hasPending({ events }: PartitionKeys, { group, consumer }: ConsumerIdentity): Promise<boolean> {
    const [[count]] = await Promise.all([
      this.client.xpending(events, group),
      this.client
        .xreadgroup('GROUP', group, consumer, 'COUNT', 1, 'STREAMS', events, BEHIND_ALL)
        // The reply to the other command says what is wrong.
        .catch(() => null),
    ]);
    return Number(count) > 0;
  }

  async pickUpEvents(
    partition: PartitionKeys,
    { group, consumer }: ConsumerIdentity,
    { lease, longestBackOff }: Pick<EventRules, 'lease' | 'longestBackOff'>,
    limit: number,
  ): Promise<PickedUpEntry[]> {
    const keys = [partition.events, partition.failing(group), partition.retries(group)];
    const args = [group, consumer, lease, limit, longestBackOff];
    return (await this.#scripts.pickUpEvents(keys.length, ...keys, ...args)) as PickedUpEntry[];
  }

  /** All handlers of these entries have succeeded. */
  async acknowledge(
    partition: PartitionKeys,
    { group }: ConsumerIdentity,
    positions: readonly string[],
  ): Promise<AcknowledgeReply> {
    const keys = [partition.events, partition.failing(group), partition.retries(group)];
    return (await this.#scripts.acknowledgeEvents(keys.length, ...keys, group, ...positions)) as AcknowledgeReply;
  }

  /** Handlers of an entry have failed: schedules its retry, or makes it a dead letter. */
  async fail(
    entry: StreamEntry,
    { group, consumer }: ConsumerIdentity,
    { done, reason, attempts, handler = '' }: EntryFailure,
    { firstBackOff, longestBackOff, retention, deadLetters }: RetryRules,
  ): Promise<FailReply> {
    const { partition, position } = entry;
    const keys = [partition.events, partition.failing(group), partition.retries(group), partition.deadLetters];
    const data = dataKeyOf(this.kind, entry);
    if (data !== undefined) keys.push(data);
    const args = [group, consumer, position, JSON.stringify(done), reason, attempts, firstBackOff, longestBackOff];
    args.push(retention, deadLetters.maxSize, deadLetters.maxDataSize, handler, this.kind.data?.endField ?? '');
    return (await this.#scripts.retryOrDeadLetter(keys.length, ...keys, ...args)) as FailReply;
  }

  /** This instance has no handler for an entry: `want` is what that of another one would want. */
  async passOn(
    { partition, position }: StreamEntry,
    { group, consumer }: ConsumerIdentity,
    want: string,
    { firstBackOff, longestBackOff }: Pick<RetryRules, 'firstBackOff' | 'longestBackOff'>,
  ): Promise<PassOnReply> {
    const keys = [partition.events, partition.retries(group), partition.wanted];
    // So that the others, whose polls come before the next one of this instance, are asked first.
    const args = [group, consumer, position, want, firstBackOff / 10, longestBackOff];
    return (await this.#scripts.passOnEvent(keys.length, ...keys, ...args)) as PassOnReply;
  }

  async renewLease(
    { events }: PartitionKeys,
    { group, consumer }: ConsumerIdentity,
    positions: readonly string[],
  ): Promise<RenewReply[]> {
    return (await this.#scripts.renewLease(1, events, group, consumer, ...positions)) as RenewReply[];
  }

  /** `kept`: the positions of the entries that the instance still handles. */
  async releaseEvents(
    partition: PartitionKeys,
    { group, consumer }: ConsumerIdentity,
    kept: readonly string[],
  ): Promise<ReleaseReply> {
    const keys = [partition.events, partition.retries(group)];
    return (await this.#scripts.releaseEvents(keys.length, ...keys, group, consumer, ...kept)) as ReleaseReply;
  }
}
