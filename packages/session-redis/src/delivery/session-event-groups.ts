import { Inject, Injectable } from '@nestjs/common';
import type { AttributeSerializer } from '@nest-session/core';
import type { Redis } from 'ioredis';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import { REDIS_SESSION_OPTIONS, REQUEST_STREAM_SCRIPTS } from '../configuration/redis-session.tokens.js';
import { RequestConnection } from '../connection/request.connection.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import type { EventStreamScripts, RemoveGroupReply, ReplayReply } from '../scripts/stream/event-stream.scripts.js';
import {
  type ConsumerState,
  consumerStates,
  type GroupState,
  groupStates,
  livenessOf,
  oldestUnread,
} from './group-state.js';
import { type SessionDeadLetter, toDeadLetter } from './session-dead-letter.js';
import { type DeadLetterBounds, SessionDeadLetterReader } from './session-dead-letter.reader.js';

/** What is known of a group: instances of which one handles each event. */
export interface SessionEventGroupInfo {
  /** The option `events.group` of its instances. */
  readonly name: string;
  /** How many of the events that are kept it has not read yet. */
  readonly lag: number;
  /** When the first of them was recorded: epoch ms by Redis' clock. */
  readonly oldestUnread: number | undefined;
  /** How many events it has read and not finished, those that wait for their next attempt included. */
  readonly pending: number;
  /** How many of them wait for their next attempt. */
  readonly retrying: number;
  /** How many events were removed before it had handled them. */
  readonly dropped: number;
  /** Its instances, also those that have died: for as long as they have something pending, and an hour. */
  readonly consumers: readonly ConsumerState[];
}

/** Of which group; unset: of all. */
export interface DeadLetterFilter {
  /** The name of the group; unset: all groups. */
  readonly group?: string;
}

const MOST_LETTERS = 100;
/** Events of a stream per call. */
const COUNTED_PER_CALL = 1000;

/**
 * The groups that handle session events, and the events that they could not handle, for those who operate an
 * application. `RedisSessionModule` provides it. A call fails with a SessionStoreError when Redis does not answer.
 */
@Injectable()
export class SessionEventGroups {
  readonly #all: readonly SessionKeys[];
  readonly #serializer: AttributeSerializer;
  readonly #liveness: number;

  /** @internal `RedisSessionModule` does this: inject it. */
  constructor(
    @Inject(RequestConnection) private readonly connection: RequestConnection,
    @Inject(REQUEST_STREAM_SCRIPTS) private readonly scripts: EventStreamScripts,
    @Inject(SessionDeadLetterReader) private readonly letters: SessionDeadLetterReader,
    @Inject(SessionPartitions) { all }: SessionPartitions,
    @Inject(REDIS_SESSION_OPTIONS) { serializer, events }: ResolvedRedisSessionOptions,
  ) {
    this.#all = all;
    this.#serializer = serializer;
    this.#liveness = livenessOf(events.lease);
  }

  /** All groups, by name. The numbers are of one moment each, not of the same one. */
  async list(): Promise<SessionEventGroupInfo[]> {
    const groups = await this.#run((client) => groupStates(client, this.#all));
    const infos: SessionEventGroupInfo[] = [];
    for (const group of groups) infos.push(await this.#info(group));
    return infos;
  }

  /**
   * Has events kept for a group whose instances are yet to come: from the oldest event that is still kept, or from the
   * next one. An instance that starts creates its group itself, from the oldest. False when it exists.
   */
  async create(name: string, { from = 'oldest' }: { readonly from?: 'oldest' | 'now' } = {}): Promise<boolean> {
    if (name.trim() === '') throw new RangeError('The name of a group must not be empty');
    const replies = await this.#inAll((partition) => this.scripts.createGroup(partition, name, from));
    return replies.includes('created');
  }

  /**
   * Forgets a group that is not used any more, so that nothing is kept for it; what is among the dead letters stays.
   * Refused (`live`) while one of its instances runs: it would only create the group again.
   */
  async remove(name: string): Promise<RemoveGroupReply> {
    const consumers = await this.#run((client) => consumerStates(client, this.#all, name));
    if (consumers.some(({ idle }) => idle < this.#liveness)) return 'live';
    const replies = await this.#inAll((partition) => this.scripts.removeGroup(partition, name, this.#liveness));
    // One that has come meanwhile is told by the script, and creates the group again where it is gone.
    return replies.find((reply) => reply === 'live') ?? replies.find((reply) => reply === 'removed') ?? 'unknown';
  }

  /** The dead letters, the oldest first: up to `limit`, those behind the one with the id `after`. */
  async deadLetters(
    options: DeadLetterFilter & { readonly after?: string; readonly limit?: number } = {},
  ): Promise<SessionDeadLetter[]> {
    const { after, limit = MOST_LETTERS, ...filter } = options;
    const letters: SessionDeadLetter[] = [];
    for await (const letter of this.#deadLetters(filter, { after })) {
      if (letters.length >= limit) break;
      letters.push(letter);
    }
    return letters;
  }

  /**
   * Has the group that could not handle an event try again, with as many attempts as at first: the handlers that have
   * not succeeded are called, with the same `event.id` and the data that the session had. Other groups do not hear of it.
   */
  async replay(id: string): Promise<ReplayReply> {
    const place = this.letters.placeOf(id);
    if (!place) return 'gone';
    return this.#run(() => this.scripts.replayDeadLetter(place.partition, place.position));
  }

  /** Replays every dead letter that can be; those of events whose group was removed stay. Returns how many it replayed. */
  replayAll(filter: DeadLetterFilter = {}): Promise<number> {
    return this.#forEach(filter, async ({ id }) => (await this.replay(id)) === 'replayed');
  }

  /** Deletes a dead letter. False when there is none of this id. */
  async discard(id: string): Promise<boolean> {
    const place = this.letters.placeOf(id);
    if (!place) return false;
    return (await this.#run((client) => client.xdel(place.partition.deadLetters, place.position))) === 1;
  }

  /** Deletes every dead letter, what is no event included. Returns how many it deleted. */
  discardAll(filter: DeadLetterFilter = {}): Promise<number> {
    return this.#forEach(filter, ({ id }) => this.discard(id));
  }

  async #info(group: GroupState): Promise<SessionEventGroupInfo> {
    const { name, pending } = group;
    const [consumers, oldest, retrying, dropped] = await this.#run((client) =>
      Promise.all([
        consumerStates(client, this.#all, name),
        oldestUnread(client, group),
        Promise.all(this.#all.map((partition) => client.zcard(partition.retries(name)))),
        Promise.all(this.#all.map((partition) => client.hget(partition.dropped, name))),
      ]),
    );
    const lag = oldest === undefined ? 0 : await this.#lagOf(group);
    return {
      name,
      lag,
      oldestUnread: oldest,
      pending,
      retrying: sum(retrying),
      dropped: sum(dropped.map((count) => Number(count ?? 0))),
      consumers,
    };
  }

  async #lagOf({ lastDelivered }: GroupState): Promise<number> {
    return sum(await Promise.all([...lastDelivered].map(([partition, position]) => this.#count(partition, position))));
  }

  async #count(partition: SessionKeys, position: string): Promise<number> {
    let count = 0;
    for (let from: string | undefined = position; from !== undefined;) {
      const start: string = from;
      const [, counted, next] = await this.#run(() => this.scripts.countEvents(partition, start, COUNTED_PER_CALL));
      count += counted;
      from = next;
    }
    return count;
  }

  /** Does something with what is among the dead letters by now, not with what joins them meanwhile. */
  async #forEach(filter: DeadLetterFilter, act: (letter: SessionDeadLetter) => Promise<boolean>): Promise<number> {
    const bounds = await this.letters.bounds();
    let count = 0;
    for await (const letter of this.#deadLetters(filter, { bounds })) if (await act(letter)) count++;
    return count;
  }

  async *#deadLetters(
    { group }: DeadLetterFilter,
    range: { after?: string | undefined; bounds?: DeadLetterBounds },
  ): AsyncIterable<SessionDeadLetter> {
    for await (const entry of this.letters.read(range)) {
      const letter = toDeadLetter(this.letters.idOf(entry), entry, this.#serializer);
      if (group === undefined || letter.group === group) yield letter;
    }
  }

  #inAll<T>(act: (partition: SessionKeys) => Promise<T>): Promise<T[]> {
    return this.#run(() => Promise.all(this.#all.map(act)));
  }

  #run<T>(command: (client: Redis) => Promise<T>): Promise<T> {
    return this.connection.run(command);
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
