import { type AttributeSerializer, InvalidSessionOptionsError } from '@nest-session/core';
import type { Redis } from 'ioredis';
import type { RequestConnection } from '../connection/request.connection.js';
import type { SessionKeys } from '../keys/session.keys.js';
import type { EventStreamScripts, RemoveGroupReply, ReplayReply } from '../scripts/event-stream.scripts.js';
import { type ConsumerState, consumerStates, firstEventAfter, type GroupState, groupStates } from './group.state.js';
import { type SessionDeadLetter, toDeadLetter } from './session-dead-letter.js';
import type { StreamEntry } from './stream-entry.js';

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
  readonly group?: string;
}

/** What it works with. */
export interface SessionEventGroupsParts {
  readonly connection: RequestConnection;
  readonly scripts: EventStreamScripts;
  readonly keys: SessionKeys;
  readonly serializer: AttributeSerializer;
  /** Within how many milliseconds an instance that is at work asks for events. */
  readonly liveness: number;
}

/** Entries of a stream per call. */
const PAGE = 100;
const COUNTED_PER_CALL = 1000;

/**
 * The groups that handle session events, and the events that they could not handle, for those who operate an
 * application. `RedisSessionModule` provides it. A call fails with a SessionStoreError when Redis does not answer.
 */
export class SessionEventGroups {
  readonly #parts: SessionEventGroupsParts;

  /** @internal `RedisSessionModule` does this: inject it. */
  constructor(parts: SessionEventGroupsParts) {
    this.#parts = parts;
  }

  /** All groups, by name. The numbers are of one moment each, not of the same one. */
  async list(): Promise<SessionEventGroupInfo[]> {
    const { events } = this.#parts.keys;
    const groups = await this.#run((client) => groupStates(client, events));
    const infos: SessionEventGroupInfo[] = [];
    for (const group of groups) infos.push(await this.#info(group));
    return infos;
  }

  /**
   * Has events kept for a group whose instances are yet to come: from the oldest event that is still kept, or from the
   * next one. An instance that starts creates its group itself, from the oldest. False when it exists.
   */
  async create(name: string, { from = 'oldest' }: { readonly from?: 'oldest' | 'now' } = {}): Promise<boolean> {
    if (name.trim() === '') {
      throw new InvalidSessionOptionsError('SessionEventGroups', ['The name of a group must not be empty.']);
    }
    return (await this.#run(() => this.#parts.scripts.createGroup(name, from))) === 'created';
  }

  /**
   * Forgets a group that is not used any more, so that nothing is kept for it; what is among the dead letters stays.
   * Refused (`live`) while one of its instances runs: it would only create the group again.
   */
  remove(name: string): Promise<RemoveGroupReply> {
    return this.#run(() => this.#parts.scripts.removeGroup(name, this.#parts.liveness));
  }

  /** The dead letters, the oldest first: up to `limit`, those behind the one with the id `after`. */
  async deadLetters(
    options: DeadLetterFilter & { readonly after?: string; readonly limit?: number } = {},
  ): Promise<SessionDeadLetter[]> {
    const { after, limit = PAGE, ...filter } = options;
    const letters: SessionDeadLetter[] = [];
    for await (const letter of this.#deadLetters(filter, after)) {
      if (letters.length >= limit) break;
      letters.push(letter);
    }
    return letters;
  }

  /**
   * Has the group that could not handle an event try again, with as many attempts as at first: the handlers that have
   * not succeeded are called, with the same `event.id` and the data that the session had. Other groups do not hear of it.
   */
  replay(id: string): Promise<ReplayReply> {
    return this.#run(() => this.#parts.scripts.replayDeadLetter(id));
  }

  /** Replays every dead letter that can be; those of events whose group was removed stay. Returns how many it replayed. */
  replayAll(filter: DeadLetterFilter = {}): Promise<number> {
    return this.#forEach(filter, async ({ id }) => (await this.replay(id)) === 'replayed');
  }

  /** Deletes a dead letter. False when there is none of this id. */
  async discard(id: string): Promise<boolean> {
    return (await this.#run((client) => client.xdel(this.#parts.keys.deadLetters, id))) === 1;
  }

  /** Deletes every dead letter, what is no event included. Returns how many it deleted. */
  discardAll(filter: DeadLetterFilter = {}): Promise<number> {
    return this.#forEach(filter, ({ id }) => this.discard(id));
  }

  async #info({ name, pending, lastDelivered }: GroupState): Promise<SessionEventGroupInfo> {
    const { keys } = this.#parts;
    const [consumers, oldestUnread, retrying, dropped] = await this.#run((client) =>
      Promise.all([
        consumerStates(client, keys.events, name),
        firstEventAfter(client, keys.events, lastDelivered),
        client.zcard(keys.retries(name)),
        client.hget(keys.dropped, name),
      ]),
    );
    const lag = oldestUnread === undefined ? 0 : await this.#count(lastDelivered);
    return { name, lag, oldestUnread, pending, retrying, dropped: Number(dropped ?? 0), consumers };
  }

  async #count(position: string): Promise<number> {
    let count = 0;
    for (let from: string | undefined = position; from !== undefined;) {
      const start: string = from;
      const [, counted, next] = await this.#run(() => this.#parts.scripts.countEvents(start, COUNTED_PER_CALL));
      count += counted;
      from = next;
    }
    return count;
  }

  /** Does something with what is among the dead letters by now, not with what joins them meanwhile. */
  async #forEach(filter: DeadLetterFilter, act: (letter: SessionDeadLetter) => Promise<boolean>): Promise<number> {
    const { deadLetters } = this.#parts.keys;
    const [last] = await this.#run((client) => client.xrevrange(deadLetters, '+', '-', 'COUNT', 1));
    let count = 0;
    if (!last) return count;
    for await (const letter of this.#deadLetters(filter, undefined, last[0])) if (await act(letter)) count++;
    return count;
  }

  async *#deadLetters({ group }: DeadLetterFilter, after?: string, last = '+'): AsyncIterable<SessionDeadLetter> {
    const { keys, serializer } = this.#parts;
    let start = after === undefined ? '-' : `(${after}`;
    for (;;) {
      const from = start;
      const page: StreamEntry[] = await this.#run((client) =>
        client.xrange(keys.deadLetters, from, last, 'COUNT', PAGE),
      );
      for (const entry of page) {
        const letter = toDeadLetter(entry, serializer);
        if (group === undefined || letter.group === group) yield letter;
      }
      if (page.length < PAGE) return;
      start = `(${page.at(-1)![0]}`;
    }
  }

  #run<T>(command: (client: Redis) => Promise<T>): Promise<T> {
    return this.#parts.connection.run(command);
  }
}
