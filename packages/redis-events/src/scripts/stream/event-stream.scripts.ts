import type { RemoveGroupReply, ReplayReply } from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import type { PartitionKeys } from '../../partitions/partitions.js';
import type { EventRules, TrimLimits } from '../event-rules.js';
import { defineScripts, loadScripts, type ScriptsByName } from '../define-scripts.js';
import { LUA_SOURCES } from '../lua-sources.js';
import type { EntryKind, StreamReply } from './stream-entry.js';

/**
 * Most bytes of all dead letters, which the partitions share: clients that make a handler fail must not fill Redis. It
 * is room for 256 sessions of the default `maxSessionSize`.
 */
export const DEAD_LETTER_BYTES = 64 * 2 ** 20;

export type TrimLettersReply = [word: 'done' | 'more', lost: string[]];
export type TrimReply = [word: 'done' | 'more', removed: number, dropped: (string | number)[]];
/** Whose turn a cleanup is, and whether there is anything to do. */
export type TakeCleanupTurnReply = 'due' | 'clean' | 'taken';
export type CreateGroupReply = 'created' | 'exists';
export type RemoveConsumerReply = 'removed' | 'pending';
export type CountReply = ['all', count: number] | ['more', count: number, position: string];
/** A group in a partition: its name, and the numbers of `GroupLag` in the order of look-at-groups. */
export type LookReply = [name: string, ...numbers: number[]];
export type ReadReply =
  | ['read', entries: StreamReply[]]
  | ['begin', position: string, time: number]
  | ['gap', position: string]
  | ['thinned', position: string];

export type DiscardReply = 'discarded' | 'gone';

const SOURCES = loadScripts(LUA_SOURCES, 'stream', {
  recordEvent: 'record-event',
  takeCleanupTurn: 'take-cleanup-turn',
  trimEvents: 'trim-events',
  createGroup: 'create-group',
  removeGroup: 'remove-group',
  removeConsumer: 'remove-consumer',
  countEvents: 'count-events',
  lookAtGroups: 'look-at-groups',
  readEvents: 'read-events',
  replayDeadLetter: 'replay-dead-letter',
  discardDeadLetter: 'discard-dead-letter',
  trimDeadLetters: 'trim-dead-letters',
});

/** The scripts for the events stream and its groups. Each is one typed function, and each call is for one partition. */
export class EventStreamScripts {
  readonly #scripts: ScriptsByName<keyof typeof SOURCES>;

  constructor(
    client: Redis,
    private readonly kind: EntryKind,
  ) {
    this.#scripts = defineScripts(client, SOURCES);
  }

  /** Adds an entry of a type to the stream of a partition. `fields`: further ones, and their values, in turn. */
  async record({ events, wanted }: PartitionKeys, type: string, fields: readonly string[]): Promise<string> {
    return (await this.#scripts.recordEvent(2, events, wanted, type, ...fields)) as string;
  }

  /**
   * Takes the cleanup of a partition for a while, unless another instance has it. Up to `maxLength` young events need
   * none.
   */
  async takeCleanupTurn(
    { cleanup, events, deadLetters, prefix }: PartitionKeys,
    instance: string,
    duration: number,
    { grace, retention, maxLength }: TrimLimits,
  ): Promise<TakeCleanupTurnReply> {
    const keys = [cleanup, events, deadLetters, ...this.kind.dueSets.map((name) => prefix + name)];
    const args = [instance, duration, grace, retention, maxLength];
    return (await this.#scripts.takeCleanupTurn(keys.length, ...keys, ...args)) as TakeCleanupTurnReply;
  }

  async trim(partition: PartitionKeys, { grace, retention, maxLength }: TrimLimits, limit: number): Promise<TrimReply> {
    const { events, trimmed, dropped, thinned, prefix } = partition;
    const { makingRoom, data } = this.kind;
    const args = [grace, retention, maxLength, limit, makingRoom.join(' ')];
    if (data) args.push(prefix + data.keyPrefix, data.idField, data.endField, data.endTypes.join(' '));
    return (await this.#scripts.trimEvents(4, events, trimmed, dropped, thinned, ...args)) as TrimReply;
  }

  async createGroup(
    { events, trimmed, wanted }: PartitionKeys,
    group: string,
    from: 'oldest' | 'now',
  ): Promise<CreateGroupReply> {
    const types = this.kind.types.join(' ');
    return (await this.#scripts.createGroup(3, events, trimmed, wanted, group, from, types)) as CreateGroupReply;
  }

  /** `liveness`: the idle time in milliseconds below which an instance is alive. */
  async removeGroup(partition: PartitionKeys, group: string, liveness: number): Promise<RemoveGroupReply> {
    const { events, handlers, dropped, wanted, lostDeadLetters } = partition;
    const keys = [events, partition.failing(group), partition.retries(group), handlers, dropped, wanted];
    keys.push(lostDeadLetters);
    return (await this.#scripts.removeGroup(keys.length, ...keys, group, liveness)) as RemoveGroupReply;
  }

  /** Removes a dead instance from its group, unless it has pending entries. */
  async removeConsumer({ events }: PartitionKeys, group: string, consumer: string): Promise<RemoveConsumerReply> {
    return (await this.#scripts.removeConsumer(1, events, group, consumer)) as RemoveConsumerReply;
  }

  /** Counts up to `limit` events after a position. */
  async countEvents({ events }: PartitionKeys, position: string, limit: number): Promise<CountReply> {
    return (await this.#scripts.countEvents(1, events, position, limit)) as CountReply;
  }

  /** How far each group is behind; of its unread events, up to `limit` are counted. */
  async lookAtGroups(keys: PartitionKeys, limit: number): Promise<LookReply[]> {
    const { events, dropped, lostDeadLetters, deadLetterIndex } = keys;
    const reply = await this.#scripts.lookAtGroups(4, events, dropped, lostDeadLetters, deadLetterIndex, limit);
    return reply as LookReply[];
  }

  /**
   * Up to `limit` events after a position, for a reader outside of the groups. Without a position: where to begin.
   * `types`: what it wants. `known`: the position up to which it knows that events have made room for ends. `hasRead`:
   * whether the event at the position was in the stream, so that its loss is a gap.
   */
  async readEvents(
    { events, trimmed, thinned }: PartitionKeys,
    position: string | undefined,
    limit: number,
    types: readonly string[],
    known: string,
    hasRead = false,
  ): Promise<ReadReply> {
    // No others make room, and the hash that is looked at has fields that are no types.
    const thinnable = types.filter((type) => this.kind.makingRoom.includes(type));
    const args = [position ?? '', limit, known, hasRead ? 1 : '', ...thinnable];
    return (await this.#scripts.readEvents(3, events, trimmed, thinned, ...args)) as ReadReply;
  }

  async replayDeadLetter({ events, deadLetters }: PartitionKeys, position: string): Promise<ReplayReply> {
    return (await this.#scripts.replayDeadLetter(2, events, deadLetters, position)) as ReplayReply;
  }

  async discardDeadLetter({ deadLetters }: PartitionKeys, position: string): Promise<DiscardReply> {
    return (await this.#scripts.discardDeadLetter(1, deadLetters, position)) as DiscardReply;
  }

  async trimDeadLetters(
    { deadLetters }: PartitionKeys,
    { retention, maxSize }: Pick<EventRules['deadLetters'], 'retention' | 'maxSize'>,
    limit: number,
  ): Promise<TrimLettersReply> {
    return (await this.#scripts.trimDeadLetters(1, deadLetters, retention, maxSize, limit)) as TrimLettersReply;
  }
}
