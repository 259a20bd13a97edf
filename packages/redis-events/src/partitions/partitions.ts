import slotOf from 'cluster-key-slot';

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

/** A hash tag for each partition: it begins with its number, and its slot is in the partition's share. */
function tagsOf(count: number): string[] {
  return Array.from({ length: count }, (_, partition) => {
    for (let attempt = 0; ; attempt++) {
      const tag = `${partition}-${attempt}`;
      if (Math.floor((slotOf(tag) * count) / SLOTS) === partition) return tag;
    }
  });
}

// These characters have a meaning in a Redis pattern or a hash tag. A namespace with them could match keys of others.
const FORBIDDEN = /[{}*[\]?\\]/;
// In these names the part after the word is free. So the keys of `app:index` would be indexes of the namespace `app`.
const OF_KEYS = /:(?:index|revoked|due)(?::|$)/;
const LIKE_KEYS =
  'must not contain :index, :revoked or :due: its keys would pass for those of the namespace before that';

/** The problem of a namespace, as the end of the sentence "Option `namespace` ..."; undefined if it is valid. */
export function namespaceProblem(namespace: string): string | undefined {
  return FORBIDDEN.test(namespace) ? 'must not contain { } * [ ] ? or \\' : namespaceBesideProblem(namespace);
}

/** The same of a namespace that another library has chosen, and beside which we keep keys, in one partition. */
export function namespaceBesideProblem(namespace: string): string | undefined {
  return emptyNamespaceProblem(namespace) ?? (OF_KEYS.test(namespace) ? LIKE_KEYS : undefined);
}

/** The same where we keep no key. */
export function emptyNamespaceProblem(namespace: string): string | undefined {
  return namespace.trim() === '' ? 'must not be empty' : undefined;
}

/** A pattern of Redis that matches a text alone. */
export function patternOf(text: string): string {
  return text.replace(/[*?[\\\]]/g, '\\$&');
}

/**
 * The names of the keys that every partition has, whatever its entries are about. With several partitions, all keys of
 * a partition carry the hash tag that partitions.ts chooses, so Redis Cluster keeps them in one slot and one script may
 * change them. Some keys are known only in Redis, such as the bucket of a minute. Scripts derive their names from
 * `prefix`.
 */
export class PartitionKeys {
  /** Whether scripts signal new events. With a single partition, instances wait on its stream instead. */
  readonly hasSignals: boolean;
  /** Prefix of every key of the partition. */
  readonly prefix: string;
  /** STRING: the instance that has the turn to clean up. The key exists until another instance may take the turn. */
  readonly cleanup: string;
  /**
   * STREAM of events. With several partitions, the sharded channel of the same name signals new events and more to the
   * instances. See connection/partition-signals.ts.
   */
  readonly events: string;
  /** STREAM of dead letters. */
  readonly deadLetters: string;
  /** ZSET of the dead letters by their kinds, see scripts/library/dead-letters.lua. */
  readonly deadLetterIndex: string;
  /** HASH by group: the number of dead letters that were removed before they were replayed or deleted. */
  readonly lostDeadLetters: string;
  /** HASH by group: the handlers of its instances, and the types of events that they want, as JSON by instance. */
  readonly handlers: string;
  /** HASH by group: the types of events that the group wants, separated by spaces. If empty, every group wants all. */
  readonly wanted: string;
  /** STRING: the position of the last trimmed event. */
  readonly trimmed: string;
  /**
   * HASH: `scanned` is the position up to which events were removed to make room for others. By type, it has the
   * position of the last removed event. Missing if none was removed.
   */
  readonly thinned: string;
  /** HASH by group: the number of events that were trimmed before the group had handled them. */
  readonly dropped: string;

  /** @param tag the hash tag of the partition, which partitions.ts chooses. Empty if there is one partition */
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

  /** STRING, empty: exists while the broadcast handlers of some instance want events of the type. */
  broadcastWanted(type: string): string {
    return `${this.wanted}:broadcast:${type}`;
  }

  /** HASH by position: the attempts of a group at an event that failed, and the handlers that succeeded, as JSON. */
  failing(group: string): string {
    return `${this.events}:failing:${group}`;
  }

  /** ZSET of the positions of events that wait for a retry in a group, by the due time in epoch ms. */
  retries(group: string): string {
    return `${this.events}:retries:${group}`;
  }
}
