import type { RemoveGroupReply, ReplayReply } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import type { EventRules, RetryRules, TrimLimits } from '../configuration/event-rules.js';
import type { PartitionKeys } from '../partitions/partitions.js';
import { defineScripts, loadScripts, type RunScript } from './define-scripts.js';
import { LUA_SOURCES } from './lua-sources.js';
import { dataKeyOf, type EntryKind, type StreamEntry, type StreamReply } from './stream/stream-entry.js';

export interface ConsumerIdentity {
  readonly group: string;
  readonly consumer: string;
}

type PickedUpEntry = [
  position: string,
  fields: string[],
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

export interface RegisteredHandlers {
  readonly names: readonly string[];
  readonly types: readonly string[];
}

/** A group in a partition: its name, and the numbers of `GroupReading` in the order of look-at-groups. */
type LookReply = [name: string, ...numbers: number[]];
export type ReadReply =
  | ['read', entries: StreamReply[]]
  | ['begin', position: string, time: number]
  | ['gap', position: string]
  | ['thinned', position: string];
type TrimReply = [word: 'done' | 'more', removed: number, dropped: (string | number)[]];
type TrimLettersReply = [word: 'done' | 'more', lost: string[]];
type CountReply = ['all', count: number] | ['more', count: number, position: string];
export type RegisterReply = ['registered'] | ['differing', names: string];
export type TakeCleanupTurnReply = 'due' | 'clean' | 'taken';
type CreateGroupReply = 'created' | 'exists';
type RemoveConsumerReply = 'removed' | 'pending';
type DiscardReply = 'discarded' | 'gone';
export type WishReply = 'renewed' | 'begun';
type WantReply = 'wanted';
type AcknowledgeReply = 'acknowledged';
export type FailReply = 'retry' | 'dead' | 'lost';
export type PassOnReply = 'passed' | 'unwanted' | 'lost';
type RenewReply = 'renewed' | 'lost';
type ReleaseReply = 'left' | 'staying';

/** A position after all entries; see note_instance() in scripts/library/groups.lua. */
const BEHIND_ALL = '18446744073709551614-0';

const SCRIPTS = loadScripts(LUA_SOURCES, 'stream', 'delivery');

/** What these do and reply, the header of each script says. */
export class EventStreamScripts {
  readonly #run: RunScript<keyof typeof SCRIPTS>;

  constructor(
    private readonly client: Redis,
    private readonly kind: EntryKind,
  ) {
    this.#run = defineScripts(client, SCRIPTS);
  }

  /** `fields`: further ones, and their values, in turn. Resolves to the position. */
  record({ events, wanted }: PartitionKeys, type: string, fields: readonly string[]) {
    return this.#run<string>('record-event', [events, wanted], [type, ...fields]);
  }

  takeCleanupTurn(
    { cleanup, events, deadLetters, prefix }: PartitionKeys,
    instance: string,
    duration: number,
    { grace, retention, maxLength }: TrimLimits,
  ) {
    const keys = [cleanup, events, deadLetters, ...this.kind.dueSets.map((name) => prefix + name)];
    return this.#run<TakeCleanupTurnReply>('take-cleanup-turn', keys, [
      instance,
      duration,
      grace,
      retention,
      maxLength,
    ]);
  }

  trim(partition: PartitionKeys, { grace, retention, maxLength }: TrimLimits, limit: number) {
    const { events, trimmed, dropped, thinned, prefix } = partition;
    const { makingRoom, data } = this.kind;
    const args = [grace, retention, maxLength, limit, makingRoom.join(' ')];
    if (data) args.push(prefix + data.keyPrefix, data.idField, data.endField, data.endTypes.join(' '));
    return this.#run<TrimReply>('trim-events', [events, trimmed, dropped, thinned], args);
  }

  createGroup({ events, trimmed, wanted }: PartitionKeys, group: string, from: 'oldest' | 'now') {
    return this.#run<CreateGroupReply>(
      'create-group',
      [events, trimmed, wanted],
      [group, from, this.kind.types.join(' ')],
    );
  }

  removeGroup(partition: PartitionKeys, group: string, liveness: number) {
    const { events, handlers, dropped, wanted, lostDeadLetters } = partition;
    const keys = [events, partition.failing(group), partition.retries(group), handlers, dropped, wanted];
    return this.#run<RemoveGroupReply>('remove-group', [...keys, lostDeadLetters], [group, liveness]);
  }

  removeConsumer({ events }: PartitionKeys, group: string, consumer: string) {
    return this.#run<RemoveConsumerReply>('remove-consumer', [events], [group, consumer]);
  }

  countEvents({ events }: PartitionKeys, position: string, limit: number) {
    return this.#run<CountReply>('count-events', [events], [position, limit]);
  }

  /** How far each group is behind; of its unread events, up to `limit` are counted. */
  lookAtGroups({ events, dropped, lostDeadLetters, deadLetterIndex }: PartitionKeys, limit: number) {
    return this.#run<LookReply[]>('look-at-groups', [events, dropped, lostDeadLetters, deadLetterIndex], [limit]);
  }

  /** `known`: up to where the reader knows of removed events. `hasRead`: the event at `position` was in the stream. */
  readEvents(
    { events, trimmed, thinned }: PartitionKeys,
    position: string | undefined,
    limit: number,
    types: readonly string[],
    known: string,
    hasRead = false,
  ) {
    // No others make room, and the hash that is looked at has fields that are no types.
    const thinnable = types.filter((type) => this.kind.makingRoom.includes(type));
    const args = [position ?? '', limit, known, hasRead ? 1 : '', ...thinnable];
    return this.#run<ReadReply>('read-events', [events, trimmed, thinned], args);
  }

  replayDeadLetter({ events, deadLetters }: PartitionKeys, position: string) {
    return this.#run<ReplayReply>('replay-dead-letter', [events, deadLetters], [position]);
  }

  discardDeadLetter({ deadLetters }: PartitionKeys, position: string) {
    return this.#run<DiscardReply>('discard-dead-letter', [deadLetters], [position]);
  }

  trimDeadLetters(
    { deadLetters }: PartitionKeys,
    { retention, maxSize }: Pick<EventRules['deadLetters'], 'retention' | 'maxSize'>,
    limit: number,
  ) {
    return this.#run<TrimLettersReply>('trim-dead-letters', [deadLetters], [retention, maxSize, limit]);
  }

  registerHandlers(
    { events, handlers, wanted }: PartitionKeys,
    { group, consumer }: ConsumerIdentity,
    { names, types }: RegisteredHandlers,
    liveness: number,
  ) {
    const args = [group, consumer, liveness, JSON.stringify(names), types.join(' ')];
    return this.#run<RegisterReply>('register-handlers', [events, handlers, wanted], args);
  }

  wantEvents({ wanted }: PartitionKeys, { group }: ConsumerIdentity, types: readonly string[]) {
    return this.#run<WantReply>('want-events', [wanted], [group, ...types]);
  }

  /** An instance without handlers: its group wants no events, unless another instance has told otherwise. */
  async abstain({ wanted }: PartitionKeys, { group }: ConsumerIdentity): Promise<void> {
    await this.client.hsetnx(wanted, group, '');
  }

  wantBroadcast(partition: PartitionKeys, types: readonly string[], milliseconds: number) {
    const keys = types.map((type) => partition.broadcastWanted(type));
    return this.#run<WishReply[]>('want-broadcast', keys, [milliseconds]);
  }

  /** Whether events of a group are pending, which notes as well that this instance is alive. */
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

  pickUpEvents(
    partition: PartitionKeys,
    { group, consumer }: ConsumerIdentity,
    { lease, longestBackOff }: Pick<EventRules, 'lease' | 'longestBackOff'>,
    limit: number,
  ) {
    const keys = [partition.events, partition.failing(group), partition.retries(group)];
    return this.#run<PickedUpEntry[]>('pick-up-events', keys, [group, consumer, lease, limit, longestBackOff]);
  }

  acknowledge(partition: PartitionKeys, { group }: ConsumerIdentity, positions: readonly string[]) {
    const keys = [partition.events, partition.failing(group), partition.retries(group)];
    return this.#run<AcknowledgeReply>('acknowledge-events', keys, [group, ...positions]);
  }

  fail(
    entry: StreamEntry,
    { group, consumer }: ConsumerIdentity,
    { done, reason, attempts, handler = '' }: EntryFailure,
    { firstBackOff, longestBackOff, retention, deadLetters }: RetryRules,
  ) {
    const { partition, position } = entry;
    const keys = [partition.events, partition.failing(group), partition.retries(group), partition.deadLetters];
    const data = dataKeyOf(this.kind, entry);
    if (data !== undefined) keys.push(data);
    const args = [group, consumer, position, JSON.stringify(done), reason, attempts, firstBackOff, longestBackOff];
    args.push(retention, deadLetters.maxSize, deadLetters.maxDataSize, handler, this.kind.data?.endField ?? '');
    return this.#run<FailReply>('retry-or-dead-letter', keys, args);
  }

  /** This instance has no handler for an entry: `want` is what that of another one would want. */
  passOn(
    { partition, position }: StreamEntry,
    { group, consumer }: ConsumerIdentity,
    want: string,
    { firstBackOff, longestBackOff }: Pick<RetryRules, 'firstBackOff' | 'longestBackOff'>,
  ) {
    const keys = [partition.events, partition.retries(group), partition.wanted];
    // So that the others, whose polls come before the next one of this instance, are asked first.
    const args = [group, consumer, position, want, firstBackOff / 10, longestBackOff];
    return this.#run<PassOnReply>('pass-on-event', keys, args);
  }

  renewLease({ events }: PartitionKeys, { group, consumer }: ConsumerIdentity, positions: readonly string[]) {
    return this.#run<RenewReply[]>('renew-lease', [events], [group, consumer, ...positions]);
  }

  releaseEvents(partition: PartitionKeys, { group, consumer }: ConsumerIdentity, kept: readonly string[]) {
    const keys = [partition.events, partition.retries(group)];
    return this.#run<ReleaseReply>('release-events', keys, [group, consumer, ...kept]);
  }
}
