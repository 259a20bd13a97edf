import { Inject, Injectable } from '@nestjs/common';
import type { DeadlineReading, StoreReader, WaitingReading } from '@nest-session/core/internal';
import {
  CleanupJob,
  DuePoller,
  GroupLagReader,
  RequestConnection,
  type ScriptsOn,
} from '@nest-session/redis-events/internal';
import type { Redis } from 'ioredis';
import { type DeadlineKeys, DeadlinePartitions, memberOf } from './deadline-keys.js';
import type {
  DeadlinePlace,
  DeadlineScripts,
  DeadlineToWrite,
  PlacesPage,
} from '../scripts/deadlines/deadline.scripts.js';
import {
  REDIS_DEADLINE_OPTIONS,
  REQUEST_DEADLINE_SCRIPTS,
  type ResolvedRedisDeadlineOptions,
} from './redis-deadline.options.js';
import {
  type CancelOutcome,
  type DeadlinePage,
  DeadlineStore,
  type Due,
  type NewDeadline,
  type RescheduleOutcome,
  type ScheduleReply,
  type StoredDeadline,
} from '../deadlines/deadline.store.js';

@Injectable()
export class RedisDeadlineReader implements StoreReader<DeadlineReading> {
  readonly group: string;
  readonly namespace: string;

  constructor(
    @Inject(RequestConnection) private readonly connection: RequestConnection,
    @Inject(REQUEST_DEADLINE_SCRIPTS) private readonly scripts: ScriptsOn<DeadlineScripts>,
    @Inject(DeadlinePartitions) private readonly partitions: DeadlinePartitions,
    @Inject(GroupLagReader) private readonly groups: Pick<GroupLagReader, 'read'>,
    @Inject(CleanupJob) private readonly cleanup: Pick<CleanupJob, 'age'>,
    @Inject(REDIS_DEADLINE_OPTIONS) { events }: Pick<ResolvedRedisDeadlineOptions, 'events'>,
  ) {
    this.group = events.group;
    this.namespace = partitions.namespace;
  }

  get cleanupAge(): number {
    return this.cleanup.age;
  }

  /** In each partition, one command for its deadlines and one for its groups. */
  async read(): Promise<DeadlineReading> {
    const waiting = waitingDeadlines(this.connection, this.scripts, this.partitions);
    const [all, groups] = await Promise.all([waiting, this.groups.read()]);
    return { waiting: all, groups };
  }
}

export async function waitingDeadlines(
  connection: RequestConnection,
  scripts: ScriptsOn<DeadlineScripts>,
  partitions: Pick<DeadlinePartitions, 'all'>,
): Promise<WaitingReading[]> {
  const names = new Map<string, WaitingReading>();
  const all = await connection.runInAll(partitions, (client, keys) => scripts(client).lookAt(keys));
  for (const each of all.flat()) {
    const { count, overdue } = names.get(each.name) ?? { count: 0, overdue: 0 };
    names.set(each.name, { ...each, count: count + each.count, overdue: Math.max(overdue, each.overdue) });
  }
  return [...names.keys()].toSorted().map((name) => names.get(name)!);
}

/** A call is one script or command in each partition that it concerns; a list also reads the deadlines of its page. */
@Injectable()
export class RedisDeadlineStore extends DeadlineStore {
  readonly namespace: string;
  readonly serializer: DeadlineStore['serializer'];
  readonly #encryption: ResolvedRedisDeadlineOptions['encryption'];

  constructor(
    @Inject(RequestConnection) private readonly connection: RequestConnection,
    @Inject(REQUEST_DEADLINE_SCRIPTS) private readonly scripts: ScriptsOn<DeadlineScripts>,
    @Inject(DeadlinePartitions) private readonly partitions: DeadlinePartitions,
    @Inject(DuePoller) private readonly poller: Pick<DuePoller<DeadlineKeys>, 'hurry'>,
    @Inject(REDIS_DEADLINE_OPTIONS)
    { serializer, encryption }: Pick<ResolvedRedisDeadlineOptions, 'serializer' | 'encryption'>,
  ) {
    super();
    this.namespace = partitions.namespace;
    this.serializer = serializer;
    this.#encryption = encryption;
  }

  async schedule(name: string, deadlines: readonly NewDeadline[], most: number): Promise<ScheduleReply[]> {
    const toWrite = new Map(deadlines.map((each) => [memberOf(name, each.key), each]));
    const replies = new Map<string, ScheduleReply>();
    const share = this.partitions.shareOf(most);
    const calls = this.partitions.grouped([...toWrite.keys()]).map(async ([keys, members]) => {
      const its = members.map((member) => this.#toWrite(name, member, toWrite.get(member)!));
      const { replies: words, wait } = await this.#write(keys, (scripts) => scripts.schedule(keys, name, its, share));
      if (wait !== undefined) this.poller.hurry(keys, wait);
      for (const [i, member] of members.entries()) replies.set(member, words[i]!);
    });
    await Promise.all(calls);
    return [...toWrite.keys()].map((member) => replies.get(member)!);
  }

  async reschedule(name: string, key: string, due: Due): Promise<RescheduleOutcome> {
    const { member, keys } = this.#placeOf(name, key);
    const [word, wait] = await this.#write(keys, (scripts) => scripts.reschedule(keys, name, member, due));
    if (wait !== undefined) this.poller.hurry(keys, wait);
    return word;
  }

  cancel(name: string, key: string): Promise<CancelOutcome> {
    const { member, keys } = this.#placeOf(name, key);
    return this.#write(keys, (scripts) => scripts.cancel(keys, name, member));
  }

  async get(name: string, key: string): Promise<StoredDeadline | undefined> {
    const { member, keys } = this.#placeOf(name, key);
    return this.#load(name, keys, member);
  }

  async count(name: string): Promise<number> {
    const counts = await this.connection.runInAll(this.partitions, (client, keys) => client.zcard(keys.due(name)));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** Reads places first, and deadlines only of the page: each partition has as many places, most of them not on it. */
  async list(name: string, { before, after, limit }: DeadlinePage): Promise<StoredDeadline[]> {
    const behind = after && { time: after.dueAt, member: memberOf(name, after.key) };
    const loaded = new Map<string, StoredDeadline | undefined>();
    for (let size = limit; ;) {
      // One more tells whether there are others behind this page.
      const places = await this.#places(name, { before, after: behind, limit: size + 1 });
      const page = places.slice(0, size);
      const unread = page.filter(({ member, time }) => loaded.get(member)?.dueAt !== time);
      const read = await Promise.all(unread.map(({ keys, member }) => this.#load(name, keys, member)));
      for (const [i, { member }] of unread.entries()) loaded.set(member, read[i]);
      const last = places.length > size ? page.at(-1)!.time : Infinity;
      // Between the two steps, some may have gone, or moved behind this page: then they are on the next one.
      const isOnPage = ({ dueAt }: StoredDeadline) => dueAt <= last && dueAt < (before ?? Infinity);
      const found = page.flatMap(({ keys, member }) => {
        const deadline = loaded.get(member);
        return deadline && isOnPage(deadline) ? [{ keys, member, time: deadline.dueAt, deadline }] : [];
      });
      if (last === Infinity || found.length >= limit) {
        const inTheirOrder = found.toSorted(inOrder).slice(0, limit);
        return inTheirOrder.map(({ deadline }) => deadline);
      }
      size += limit - found.length;
    }
  }

  async #places(name: string, page: PlacesPage): Promise<DeadlinePlace[]> {
    const list = (client: Redis, keys: DeadlineKeys) => this.scripts(client).list(keys, name, page);
    const places = await this.connection.runInAll(this.partitions, list);
    return places.flat().toSorted(inOrder).slice(0, page.limit);
  }

  async #load(name: string, keys: DeadlineKeys, member: string): Promise<StoredDeadline | undefined> {
    const fields = await this.connection.run((client) => client.hgetall(keys.deadline(member)), keys.prefix);
    const { id = '', key = '', due, at, data, dataKey } = fields;
    if (due === undefined) return undefined;
    const text =
      data === undefined ? undefined : this.#encryption.decrypted({ text: data, dataKey }, { id, name, key });
    return { id, key, text, dueAt: Number(due), scheduledAt: Number(at) };
  }

  #placeOf(name: string, key: string) {
    const member = memberOf(name, key);
    return { member, keys: this.partitions.of(member) };
  }

  #write<T>(keys: DeadlineKeys, call: (scripts: DeadlineScripts) => Promise<T>): Promise<T> {
    return this.connection.write((client) => call(this.scripts(client)), keys.prefix);
  }

  #toWrite(name: string, member: string, { text, ...deadline }: NewDeadline): DeadlineToWrite {
    const { id, key } = deadline;
    const data =
      text === undefined ? { text, dataKey: undefined } : this.#encryption.encrypted(text, { id, name, key });
    return { ...deadline, member, data };
  }
}

/** As the sorted sets have them. */
function inOrder(one: DeadlinePlace, other: DeadlinePlace): number {
  return one.time - other.time || (one.member < other.member ? -1 : 1);
}
