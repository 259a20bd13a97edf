// These have a meaning in a pattern of Redis or in a hash tag, so a namespace with them could reach stray keys.
const FORBIDDEN = /[{}*[\]?\\]/;

/** What is wrong with a namespace, as the end of the sentence "Option `namespace` ..."; undefined when it is valid. */
export function namespaceProblem(namespace: string): string | undefined {
  if (namespace.trim() === '') return 'must not be empty';
  if (FORBIDDEN.test(namespace)) return 'must not contain { } * [ ] ? or \\';
  return undefined;
}

/**
 * The names of the keys that every partition has, whatever its entries tell of. With several partitions, all keys of one
 * carry the same hash tag, which partitions.ts chooses: Redis Cluster keeps them in one slot, where one script may change
 * them. The scripts derive from `prefix` the keys that only Redis can know, and spell their names as well.
 */
export class PartitionKeys {
  /** Whether scripts tell of new events: not where an instance can wait for those of the only partition. */
  readonly hasSignals: boolean;
  /** Prefix of every key of the partition. */
  readonly prefix: string;
  /** STRING: the instance whose turn the cleanup is. It exists until the next instance may take it. */
  readonly cleanup: string;
  /**
   * STREAM of events. The sharded channel of the same name tells, with several partitions, what an instance would otherwise
   * find out only later; see connection/partition-signals.ts.
   */
  readonly events: string;
  /** STREAM of dead letters. */
  readonly deadLetters: string;
  /** HASH by group: the number of dead letters that were removed before anybody dealt with them. */
  readonly lostDeadLetters: string;
  /** HASH by group: the names of the handlers of its instances, as JSON. */
  readonly handlers: string;
  /** HASH by group: the types of the events that the group wants, separated by spaces. Empty: every group wants all. */
  readonly wanted: string;
  /** STRING: the position of the last trimmed event. */
  readonly trimmed: string;
  /**
   * HASH: `scanned`, the position up to which events have made room for others; by type, the position of the last event
   * that has. Missing when none has.
   */
  readonly thinned: string;
  /** HASH by group: the number of events that were trimmed before the group had handled them. */
  readonly dropped: string;

  /** `tag`: the hash tag of the partition, chosen in partitions.ts; empty when there is only one partition. */
  constructor(namespace: string, tag = '') {
    this.hasSignals = tag !== '';
    this.prefix = tag === '' ? `${namespace}:` : `${namespace}:{${tag}}:`;
    this.cleanup = `${this.prefix}cleanup`;
    this.events = `${this.prefix}events`;
    this.deadLetters = `${this.events}:dead`;
    this.lostDeadLetters = `${this.deadLetters}:lost`;
    this.handlers = `${this.events}:handlers`;
    this.wanted = `${this.events}:wanted`;
    this.trimmed = `${this.events}:trimmed`;
    this.thinned = `${this.events}:thinned`;
    this.dropped = `${this.events}:dropped`;
  }

  /** STRING, empty: exists while broadcast handlers of an instance want events of the type. */
  broadcastWanted(type: string): string {
    return `${this.wanted}:broadcast:${type}`;
  }

  /** HASH by position: the attempts and the succeeded handlers of an event that failed in a group, as JSON. */
  failing(group: string): string {
    return `${this.events}:failing:${group}`;
  }

  /**
   * ZSET of the positions of events that wait for a retry in a group; the score is the time when it is due, epoch ms.
   */
  retries(group: string): string {
    return `${this.events}:retries:${group}`;
  }
}
