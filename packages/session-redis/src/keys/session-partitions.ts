import slotOf from 'cluster-key-slot';
import { SessionKeys } from './session-keys.js';

const SLOTS = 16_384;

/**
 * The partitions of a namespace, in a fixed number. All keys of a partition are in one slot of Redis Cluster, so one
 * script can use them. The slots of the partitions are spread evenly.
 */
export class SessionPartitions {
  /** The keys of each partition. */
  readonly all: readonly SessionKeys[];
  /** HASH: the version of the data format, and the number of partitions. */
  readonly meta: string;
  /** ZSET of the names of the instances. The score is their last sign of life, in epoch ms by Redis' clock. */
  readonly instances: string;
  /** A pattern of Redis that matches the shadow keys of all partitions. */
  readonly shadows: string;
  /** Prefixes of canaries. They look like shadow keys but belong to no session, and test whether key events arrive. */
  readonly canaries: readonly string[];

  constructor(
    readonly namespace: string,
    readonly count = 1,
  ) {
    const tags = count === 1 ? [''] : tagsOf(count);
    this.all = tags.map((tag) => new SessionKeys(namespace, tag));
    this.meta = `${namespace}:meta`;
    this.instances = `${namespace}:instances`;
    this.shadows = this.any.shadow('*');
    this.canaries = this.all.map((keys) => keys.shadow('canary:'));
  }

  /** Keys whose prefix is a Redis pattern that matches the prefixes of all partitions. */
  get any(): SessionKeys {
    return this.count === 1 ? this.all[0]! : new SessionKeys(this.namespace, '*');
  }

  /** The partition of a session id. It depends on the whole id, because an id may have parts that are not random. */
  of(id: string): SessionKeys {
    // Skip the hash with one partition. It takes about a microsecond.
    return this.all[this.count === 1 ? 0 : slotOf(id) % this.count]!;
  }

  /** Groups ids by partition. */
  grouped(ids: readonly string[]): readonly (readonly [SessionKeys, readonly string[]])[] {
    if (ids.length === 1) return [[this.of(ids[0]!), ids]];
    const groups = new Map<SessionKeys, string[]>();
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

  /** Returns the session id in a shadow key, or undefined for any other key. */
  idOfShadow(key: string): string | undefined {
    const id = key.slice(key.lastIndexOf(':') + 1);
    return this.of(id).shadow(id) === key ? id : undefined;
  }
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
