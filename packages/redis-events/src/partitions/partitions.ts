import slotOf from 'cluster-key-slot';
import { type PartitionKeys, patternOf } from './partition-keys.js';

const SLOTS = 16_384;

/** What a namespace holds, for its record in Redis and for messages. */
export interface NamespaceOwner {
  /** `shared-sessions`: what is kept beside sessions of Spring Session. */
  readonly holds: 'sessions' | 'deadlines' | 'events' | 'shared-sessions';
  /** The module that keeps it. */
  readonly module: string;
  /** The option `sessionIds`, which is recorded for whoever looks into the namespace. */
  readonly ids?: 'hashed' | 'plain';
  /** Whether it has the option `maxSessions`; undefined: it signs nobody in. */
  readonly limits?: boolean;
}

/** What a namespace holds, for a sentence. */
export function shownContent(holds: string): string {
  return holds.replace('-', ' ');
}

export const OF_SESSIONS: NamespaceOwner = { holds: 'sessions', module: 'RedisSessionModule' };

/**
 * The partitions of a namespace, in a fixed number. All keys of a partition are in one slot of Redis Cluster, so one
 * script can use them. The slots of the partitions are spread evenly.
 */
export class Partitions<Keys extends PartitionKeys = PartitionKeys> {
  /** The keys of each partition. */
  readonly all: readonly Keys[];
  /** HASH: the version of the data format, the number of partitions, and what the namespace holds. */
  readonly meta: string;
  /** ZSET of the names of the instances. The score is their last sign of life, in epoch ms by Redis' clock. */
  readonly instances: string;

  /** `KeysOfPartition`: the class of the keys. */
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

  /** The partition of an id. */
  of(id: string): Keys {
    return this.all[partitionOfId(id, this.count)]!;
  }

  /** Whether both ids are in one partition, so that one script can use the keys of both. */
  inSamePartition(id: string, other: string): boolean {
    return this.of(id) === this.of(other);
  }

  /** Groups ids by partition. */
  grouped(ids: readonly string[]): readonly (readonly [Keys, readonly string[]])[] {
    if (ids.length === 1) return [[this.of(ids[0]!), ids]];
    const groups = new Map<Keys, string[]>();
    for (const id of ids) {
      const keys = this.of(id);
      const group = groups.get(keys);
      if (group) group.push(id);
      else groups.set(keys, [id]);
    }
    return [...groups];
  }

  /** The share of one partition in a limit for the whole namespace: at least 1. */
  shareOf(limit: number): number {
    return Math.ceil(limit / this.count);
  }
}

/** The number of the partition of an id, of so many. It depends on the whole id, because not all ids are random. */
function partitionOfId(id: string, count: number): number {
  // Skip the hash with one partition. It takes about a microsecond.
  return count === 1 ? 0 : slotOf(id) % count;
}

/**
 * Returns a hash tag for each partition. It begins with the partition's number, and its slot is in the partition's
 * share.
 */
function tagsOf(count: number): string[] {
  return Array.from({ length: count }, (_, partition) => {
    for (let attempt = 0; ; attempt++) {
      const tag = `${partition}-${attempt}`;
      if (Math.floor((slotOf(tag) * count) / SLOTS) === partition) return tag;
    }
  });
}
