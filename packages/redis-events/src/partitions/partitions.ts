import slotOf from 'cluster-key-slot';
import { OF_SESSIONS } from './namespace.js';

const SLOTS = 16_384;

/** All keys of a partition are in one slot of Redis Cluster: one script can use them. The slots are spread evenly. */
export class Partitions<Keys extends PartitionKeys = PartitionKeys> {
  readonly all: readonly Keys[];
  /** HASH: the version of the data format, the number of partitions, and what the namespace holds. */
  readonly meta: string;
  /** ZSET of the names of the instances. The score is their last sign of life, in epoch ms by Redis' clock. */
  readonly instances: string;

  constructor(
    readonly namespace: string,
    readonly count: number,
    private readonly KeysOfPartition: new (namespace: string, tag?: string) => Keys,
    readonly owner = OF_SESSIONS,
  ) {
    const tags = count === 1 ? [''] : tagsOf(count);
    this.all = tags.map((tag) => new KeysOfPartition(namespace, tag));
    this.meta = `${namespace}:meta`;
    this.instances = `${namespace}:instances`;
  }

  /** Keys whose prefix is a Redis pattern that matches the prefixes of all partitions. */
  get any(): Keys {
    return new this.KeysOfPartition(patternOf(this.namespace), this.count === 1 ? '' : '*');
  }

  of(id: string): Keys {
    // Of the whole id, because not all ids are random. With one partition, the hash would cost about a microsecond.
    return this.all[this.count === 1 ? 0 : slotOf(id) % this.count]!;
  }

  grouped(ids: readonly string[]): readonly (readonly [Keys, readonly string[]])[] {
    if (ids.length === 1) return [[this.of(ids[0]!), ids]];
    return [...groupedBy(ids, (id) => this.of(id))];
  }

  /** At least 1. */
  shareOf(limit: number): number {
    return Math.ceil(limit / this.count);
  }
}

/** As `Map.groupBy()`, which Node.js 20 does not have. */
export function groupedBy<Item, Group>(items: readonly Item[], groupOf: (item: Item) => Group): Map<Group, Item[]> {
  const groups = new Map<Group, Item[]>();
  for (const item of items) {
    const group = groupOf(item);
    const known = groups.get(group);
    if (known) known.push(item);
    else groups.set(group, [item]);
  }
  return groups;
}

/** A hash tag for each partition: it begins with its number, and its slot is in the partition's share. */
function tagsOf(count: number): string[] {
  return Array.from({ length: count }, (_, partition) => {
    for (let attempt = 0; ; attempt++) {
      const tag = `${partition}-${attempt}`;
      if (Math.floor((slotOf(tag) * count) / SLOTS) === partition) return tag;
    }
  });
}

/** A pattern of Redis that matches a text alone. */
export function patternOf(text: string): string {
  return text.replace(/[*?[\\\]]/g, '\\$&');
}

/** With several partitions, all keys carry a hash tag. Scripts derive from `prefix` what only Redis can know. */
export class PartitionKeys {
  /** Whether scripts signal new events. With a single partition, instances wait on its stream instead. */
  readonly hasSignals: boolean;
  readonly prefix: string;
  /** STRING: the instance that has the turn to clean up, as long as it lasts. */
  readonly cleanup: string;
  /** STREAM of events; with several partitions also the sharded channel of their signals. */
  readonly events: string;
  readonly deadLetters: string;
  /** ZSET of the dead letters by their kinds, see scripts/library/dead-letters.lua. */
  readonly deadLetterIndex: string;
  /** HASH by group: the number of dead letters that were removed before they were replayed or deleted. */
  readonly lostDeadLetters: string;
  /** HASH by group: the handlers of its instances, and the types that they want, as JSON by instance. */
  readonly handlers: string;
  /** HASH by group: the types of events that the group wants, separated by spaces. If empty, every group wants all. */
  readonly wanted: string;
  /** STRING: the position of the last trimmed event. */
  readonly trimmed: string;
  /** HASH: `scanned`, up to where events have made room for others; by type, the last one removed. */
  readonly thinned: string;
  /** HASH by group: the number of events that were trimmed before the group had handled them. */
  readonly dropped: string;

  /** `tag`: empty if there is one partition */
  constructor(namespace: string, tag = '') {
    this.hasSignals = tag !== '';
    this.prefix = tag === '' ? `${namespace}:` : `${namespace}:{${tag}}:`;
    this.cleanup = `${this.prefix}cleanup`;
    this.events = `${this.prefix}events`;
    this.deadLetters = `${this.events}:dead`;
    this.deadLetterIndex = `${this.deadLetters}:index`;
    this.lostDeadLetters = `${this.deadLetters}:lost`;
    this.handlers = `${this.events}:handlers`;
    this.wanted = `${this.events}:wanted`;
    this.trimmed = `${this.events}:trimmed`;
    this.thinned = `${this.events}:thinned`;
    this.dropped = `${this.events}:dropped`;
  }

  /** STRING, empty: exists while broadcast handlers want events of the type. */
  broadcastWanted(type: string): string {
    return `${this.wanted}:broadcast:${type}`;
  }

  /** HASH by position: the failed attempts of a group, and the handlers that succeeded, as JSON. */
  failing(group: string): string {
    return `${this.events}:failing:${group}`;
  }

  /** ZSET of the positions that wait for a retry in a group, by the due time in epoch ms. */
  retries(group: string): string {
    return `${this.events}:retries:${group}`;
  }
}

/** The items of several sources, each of which is in order, in one order. Of equal ones, the first source is first. */
export async function* merged<T>(
  sources: readonly AsyncGenerator<T, void>[],
  compare: (one: T, other: T) => number,
): AsyncGenerator<T, void> {
  const nextOf = async (source: AsyncGenerator<T, void>) => (await source.next()).value as T | undefined;
  const heads = await Promise.all(sources.map(nextOf));
  for (;;) {
    let first = -1;
    for (const [i, head] of heads.entries())
      if (head !== undefined && (first < 0 || compare(head, heads[first]!) < 0)) first = i;
    if (first < 0) return;
    yield heads[first]!;
    heads[first] = await nextOf(sources[first]!);
  }
}
