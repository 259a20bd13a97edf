import slotOf from 'cluster-key-slot';
import { SessionKeys } from './session-keys.js';

const SLOTS = 16_384;

/**
 * The partitions of a namespace: a fixed number of them. All keys of a partition are in one slot of Redis Cluster, so that one
 * script can use them. The slots of the partitions are spread evenly.
 */
export class SessionPartitions {
  /** The keys of each partition. */
  readonly all: readonly SessionKeys[];
  /** HASH: the version of the data format, and the number of partitions. */
  readonly meta: string;
  /** ZSET of the names of the instances, scored by when they last told that they live: epoch ms by the clock of Redis. */
  readonly instances: string;
  /** A pattern of Redis that matches the shadow keys of all partitions. */
  readonly shadows: string;
  /** Prefixes of canaries: keys like shadow keys, but of no session, to test whether Redis announces expired ones. */
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

  /** Keys whose prefix is a pattern of Redis that matches those of all partitions. */
  get any(): SessionKeys {
    return this.count === 1 ? this.all[0]! : new SessionKeys(this.namespace, '*');
  }

  /** The partition of a session id. It depends on the whole id, because not all ids are random. */
  of(id: string): SessionKeys {
    // A microsecond that an application with one partition need not spend.
    return this.all[this.count === 1 ? 0 : slotOf(id) % this.count]!;
  }

  /** The ids by their partitions. */
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

  /** The session id in a shadow key; undefined for any other key. */
  idOfShadow(key: string): string | undefined {
    const id = key.slice(key.lastIndexOf(':') + 1);
    return this.of(id).shadow(id) === key ? id : undefined;
  }
}

/** For each partition a hash tag that begins with its number and has a slot in its share of all slots. */
function tagsOf(count: number): string[] {
  return Array.from({ length: count }, (_, partition) => {
    for (let attempt = 0; ; attempt++) {
      const tag = `${partition}-${attempt}`;
      if (Math.floor((slotOf(tag) * count) / SLOTS) === partition) return tag;
    }
  });
}
