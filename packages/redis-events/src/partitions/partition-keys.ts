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

  /**
   * ZSET of the positions of events that wait for a retry in a group. The score is the due time in epoch ms.
   */
  retries(group: string): string {
    return `${this.events}:retries:${group}`;
  }
}
