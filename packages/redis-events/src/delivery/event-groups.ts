import { Inject, Injectable } from '@nestjs/common';
import {
  assertLimit,
  type ConsumerState,
  type DeadLetter,
  type DeadLetterFilter,
  type EventGroupInfo,
  type RemoveGroupReply,
  type ReplayReply,
} from '@nest-session/core/internal';
import type { Redis } from 'ioredis';
import { LivingInstances } from '../namespace/living-instances.js';
import { RequestConnection } from '../connection/request.connection.js';
import { merged, type PartitionKeys, Partitions } from '../partitions/partitions.js';
import type { ScriptsOn } from '../scripts/define-scripts.js';
import { EVENT_RULES, type EventRules, REQUEST_STREAM_SCRIPTS } from '../configuration/event-rules.js';
import type { EventStreamScripts } from '../scripts/event-stream.scripts.js';
import { EventProducer } from './event-producer.js';
import {
  type AskPartition,
  consumerStates,
  type GroupState,
  groupStates,
  livenessOf,
  oldestUnread,
} from './group-states.js';
import {
  byPosition,
  doneBefore,
  fieldOf,
  parsed,
  type StreamEntry,
  timeOf,
  toStreamEntry,
} from '../scripts/stream/stream-entry.js';

/** Entries per call, shared by all partitions. */
const PAGE = 100;
const SMALLEST_PAGE = 10;

type DeadLetterBounds = ReadonlyMap<PartitionKeys, string>;

function toDeadLetter<Event>(
  id: string,
  entry: StreamEntry,
  producer: Pick<EventProducer<Event>, 'toEvent'>,
): DeadLetter<Event> {
  const data = (parsed(fieldOf(entry, 'data')) ?? {}) as Record<string, string>;
  const size = fieldOf(entry, 'dataSize');
  const attempts = Number(fieldOf(entry, 'attempts') ?? 0);
  return {
    id,
    at: timeOf(entry.position),
    reason: fieldOf(entry, 'reason') ?? '',
    group: fieldOf(entry, 'group'),
    handler: fieldOf(entry, 'handler'),
    attempts,
    succeeded: doneBefore(entry),
    event: producer.toEvent(entry, data, Math.max(1, attempts)),
    omittedBytes: size === undefined ? undefined : Number(size),
    member: fieldOf(entry, 'member'),
  };
}

const MOST_LETTERS = 100;
const COUNTED_PER_CALL = 1000;

/**
 * The groups that handle events, and their dead letters. Calls reject with a SessionStoreError when Redis fails or does
 * not reply within `commandTimeout`.
 */
@Injectable()
export abstract class EventGroups<Event> {
  readonly #all: readonly PartitionKeys[];
  readonly #pageSize: number;
  readonly #instances: LivingInstances;
  readonly #liveness: number;
  readonly #ask: AskPartition = (partition, command) => this.connection.run(command, partition.prefix);

  /** @internal Inject it. */
  constructor(
    @Inject(RequestConnection) private readonly connection: RequestConnection,
    @Inject(REQUEST_STREAM_SCRIPTS) private readonly scripts: ScriptsOn<EventStreamScripts>,
    @Inject(Partitions) partitions: Partitions,
    @Inject(EVENT_RULES) { lease }: Pick<EventRules, 'lease'>,
    @Inject(EventProducer) private readonly producer: Pick<EventProducer<Event>, 'toEvent'>,
  ) {
    this.#all = partitions.all;
    this.#pageSize = Math.max(SMALLEST_PAGE, Math.ceil(PAGE / this.#all.length));
    this.#instances = new LivingInstances(connection, partitions);
    this.#liveness = livenessOf(lease);
  }

  /** All groups, ordered by name. The numbers are read one after the other, so they may not fit together exactly. */
  async list(): Promise<EventGroupInfo[]> {
    const groups = await groupStates(this.#ask, this.#all);
    const infos: EventGroupInfo[] = [];
    for (const group of groups) infos.push(await this.#info(group));
    return infos;
  }

  /**
   * Creates a group, so that events are kept for instances that start later: from the oldest one that is kept, as
   * instances do for their own, or from the next one. Resolves to false when it exists. @throws RangeError when the
   * name is empty
   */
  async create(name: string, { from = 'oldest' }: { readonly from?: 'oldest' | 'now' } = {}): Promise<boolean> {
    if (name.trim() === '') throw new RangeError('The name of a group must not be empty');
    const replies = await this.#inAll((scripts, partition) => scripts.createGroup(partition, name, from));
    return replies.includes('created');
  }

  /**
   * Removes a group that is no longer used, so that no events are kept for it. Its dead letters stay. Resolves to
   * `live`, and removes nothing, while one of its instances is alive, which would create it again.
   */
  async remove(name: string): Promise<RemoveGroupReply> {
    const [consumers, alive] = await Promise.all([
      consumerStates(this.#ask, this.#all, name),
      this.#instances.others(),
    ]);
    // With a longer lease than that of this application, one that waits for events is silent for longer.
    const isLive = (each: ConsumerState) => each.idle < this.#liveness || alive.includes(each.name);
    if (consumers.some(isLive)) return 'live';
    const replies = await this.#inAll((scripts, partition) => scripts.removeGroup(partition, name, this.#liveness));
    // The script checks again: an instance may have started meanwhile. It re-creates the group where it is gone.
    return replies.find((reply) => reply === 'live') ?? replies.find((reply) => reply === 'removed') ?? 'unknown';
  }

  /**
   * The dead letters, the oldest first: at most `limit`, by default 100, after the one with the id `after`. @throws
   * RangeError when `after` is not the id of a dead letter, or `limit` no whole number
   */
  async deadLetters(
    options: DeadLetterFilter & { readonly after?: string; readonly limit?: number } = {},
  ): Promise<DeadLetter<Event>[]> {
    const { after, limit = MOST_LETTERS, ...filter } = options;
    assertLimit(limit);
    const letters: DeadLetter<Event>[] = [];
    for await (const letter of this.#deadLetters(filter, { after })) {
      if (letters.length >= limit) break;
      letters.push(letter);
    }
    return letters;
  }

  /**
   * Lets the group of a dead letter handle the event again, with new attempts, the same `event.id` and the same data.
   * Only the handlers that have not succeeded are called.
   */
  async replay(id: string): Promise<ReplayReply> {
    const place = this.#placeOf(id);
    if (!place) return 'gone';
    return this.#write(place.partition, (scripts) => scripts.replayDeadLetter(place.partition, place.position));
  }

  /** Replays every dead letter whose group exists. Resolves to the number of replayed ones. */
  replayAll(filter: DeadLetterFilter = {}): Promise<number> {
    return this.#forEach(filter, async ({ id }) => (await this.replay(id)) === 'replayed');
  }

  /** Deletes a dead letter. Resolves to false when there is none with this id. */
  async discard(id: string): Promise<boolean> {
    const place = this.#placeOf(id);
    if (!place) return false;
    const reply = await this.#write(place.partition, (scripts) =>
      scripts.discardDeadLetter(place.partition, place.position),
    );
    return reply === 'discarded';
  }

  /** Deletes every dead letter, including stray keys and members. Resolves to the number of deleted ones. */
  discardAll(filter: DeadLetterFilter = {}): Promise<number> {
    return this.#forEach(filter, ({ id }) => this.discard(id));
  }

  async #info(group: GroupState): Promise<EventGroupInfo> {
    const { name, pending } = group;
    const inAll = <T>(command: (client: Redis, partition: PartitionKeys) => Promise<T>) =>
      this.connection.runInAll({ all: this.#all }, command);
    const [consumers, oldest, retrying, dropped, lost] = await Promise.all([
      consumerStates(this.#ask, this.#all, name),
      oldestUnread(this.#ask, group),
      inAll((client, partition) => client.zcard(partition.retries(name))),
      inAll((client, partition) => client.hget(partition.dropped, name)),
      inAll((client, partition) => client.hget(partition.lostDeadLetters, name)),
    ]);
    const unread = oldest === undefined ? [] : [...group.lastDelivered];
    const lag = sum(await Promise.all(unread.map(([partition, position]) => this.#count(partition, position))));
    const gone = { dropped: sum(dropped.map(Number)), lostDeadLetters: sum(lost.map(Number)) };
    return { name, lag, oldestUnread: oldest, pending, retrying: sum(retrying), ...gone, consumers };
  }

  async #count(partition: PartitionKeys, position: string): Promise<number> {
    let count = 0;
    for (let from: string | undefined = position; from !== undefined;) {
      const start: string = from;
      const [, counted, next] = await this.#ask(partition, (client) =>
        this.scripts(client).countEvents(partition, start, COUNTED_PER_CALL),
      );
      count += counted;
      from = next;
    }
    return count;
  }

  /** Acts on the dead letters that exist now, not on those that are added meanwhile. */
  async #forEach(filter: DeadLetterFilter, act: (letter: DeadLetter<Event>) => Promise<boolean>): Promise<number> {
    const bounds = await this.#bounds();
    let count = 0;
    for await (const letter of this.#deadLetters(filter, { bounds })) if (await act(letter)) count++;
    return count;
  }

  async *#deadLetters(
    { group }: DeadLetterFilter,
    { after, bounds }: { after?: string | undefined; bounds?: DeadLetterBounds },
  ): AsyncIterable<DeadLetter<Event>> {
    const starts = this.#startsBehind(after);
    const ends = this.#all.map((partition) => (bounds ? bounds.get(partition) : '+'));
    const sources = this.#all.map((partition, i) => this.#readIn(partition, starts[i]!, ends[i]));
    for await (const entry of merged(sources, byPosition)) {
      const id = `${entry.position}-${this.#all.indexOf(entry.partition)}`;
      const letter = toDeadLetter(id, entry, this.producer);
      if (group === undefined || letter.group === group) yield letter;
    }
  }

  /** The place of the dead letter with an id, which may be empty; undefined when the text cannot be an id. */
  #placeOf(id: string): Pick<StreamEntry, 'partition' | 'position'> | undefined {
    const [, position = '', number] = /^(\d{1,19}-\d{1,19})-(\d{1,4})$/.exec(id) ?? [];
    const partition = this.#all[Number(number)];
    return partition && { partition, position };
  }

  async #bounds(): Promise<DeadLetterBounds> {
    const last = await this.connection.runInAll({ all: this.#all }, (client, { deadLetters }) =>
      client.xrevrange(deadLetters, '+', '-', 'COUNT', 1),
    );
    return new Map(this.#all.flatMap((partition, i) => last[i]!.map(([position]) => [partition, position])));
  }

  async *#readIn(partition: PartitionKeys, start: string, end: string | undefined): AsyncGenerator<StreamEntry, void> {
    if (end === undefined) return;
    for (let from = start; ;) {
      const read = (client: Redis) => client.xrange(partition.deadLetters, from, end, 'COUNT', this.#pageSize);
      const page = await this.#ask(partition, read);
      for (const entry of page) yield toStreamEntry(partition, entry);
      if (page.length < this.#pageSize) return;
      from = `(${page.at(-1)![0]}`;
    }
  }

  /** Of two dead letters at the same position, the lower partition number comes first. */
  #startsBehind(after: string | undefined): string[] {
    if (after === undefined) return this.#all.map(() => '-');
    const place = this.#placeOf(after);
    if (!place) throw new RangeError('`after` must be the id of a dead letter');
    const last = this.#all.indexOf(place.partition);
    return this.#all.map((_, i) => (i <= last ? `(${place.position}` : place.position));
  }

  #inAll<T>(act: (scripts: EventStreamScripts, partition: PartitionKeys) => Promise<T>): Promise<T[]> {
    return Promise.all(this.#all.map((partition) => this.#write(partition, (scripts) => act(scripts, partition))));
  }

  #write<T>(partition: PartitionKeys, act: (scripts: EventStreamScripts) => Promise<T>): Promise<T> {
    const command = (client: Redis) => act(this.scripts(client));
    return this.connection.write(command, partition.prefix, { awaitsReplicas: false });
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
