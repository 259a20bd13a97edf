import type { SessionEventType } from '@nest-session/core/internal';

// These characters have a meaning in a Redis pattern or a hash tag. A namespace with them could match keys of others.
const FORBIDDEN = /[{}*[\]?\\]/;

const MEMBER = 'expires:';

/** The prefix of attribute fields in a session hash, as in Spring Session. */
export const ATTRIBUTE_FIELD = 'sessionAttr:';

/** The problem of a namespace, as the end of the sentence "Option `namespace` ..."; undefined if it is valid. */
export function namespaceProblem(namespace: string): string | undefined {
  if (namespace.trim() === '') return 'must not be empty';
  if (FORBIDDEN.test(namespace)) return 'must not contain { } * [ ] ? or \\';
  return undefined;
}

/**
 * The names of the keys of one partition. With several partitions, all keys of a partition carry the hash tag that
 * session-partitions.ts chooses, so Redis Cluster keeps them in one slot and one script may change them. Some keys are
 * known only in Redis, such as the bucket of a minute. Scripts derive their names from `prefix`.
 */
export class SessionKeys {
  /** Whether scripts signal new events. With a single partition, instances wait on its stream instead. */
  readonly hasSignals: boolean;
  /** Prefix of every key of the partition. */
  readonly prefix: string;
  /** ZSET of the minutes that have a bucket. */
  readonly bucketList: string;
  /** ZSET of the ids of the sessions that are in no bucket. The score is their end in epoch ms, or an earlier time. */
  readonly ends: string;
  /** HASH: `at` ends all sessions that began until then; `ended` is the epoch whose sessions have all been ended. */
  readonly epoch: string;
  /** STRING: the instance that has the turn to clean up. The key exists until another instance may take the turn. */
  readonly cleanup: string;
  /**
   * STREAM of session events. With several partitions, the sharded channel of the same name signals new events and more
   * to the instances. See connection/partition-signals.ts.
   */
  readonly events: string;
  /** STREAM of dead letters. */
  readonly deadLetters: string;
  /** HASH by group: the number of dead letters that were removed before they were replayed or deleted. */
  readonly lostDeadLetters: string;
  /** HASH by group: the names of the handlers of its instances, as JSON. */
  readonly handlers: string;
  /** HASH by group: the types of events that the group wants, separated by spaces. If empty, every group wants all. */
  readonly wanted: string;
  /** STRING: the position of the last trimmed event. */
  readonly trimmed: string;
  /**
   * HASH: `scanned` is the position up to which creations and changes of id were removed to make room for ends;
   * `created` and `id-changed` are the positions of the last removed event of the type. Missing if none was removed.
   */
  readonly thinned: string;
  /** HASH by group: the number of events that were trimmed before the group had handled them. */
  readonly dropped: string;

  /** @param tag the hash tag of the partition, which session-partitions.ts chooses. Empty if there is one partition */
  constructor(namespace: string, tag = '') {
    this.hasSignals = tag !== '';
    this.prefix = tag === '' ? `${namespace}:` : `${namespace}:{${tag}}:`;
    this.bucketList = `${this.prefix}expirations`;
    this.ends = `${this.prefix}ends`;
    this.epoch = `${this.prefix}epoch`;
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

  /** HASH: the session hash. */
  session(id: string): string {
    return `${this.prefix}sessions:${id}`;
  }

  /** STRING, empty: the shadow key. It exists exactly as long as the session is alive. */
  shadow(id: string): string {
    return `${this.prefix}sessions:expires:${id}`;
  }

  /** STRING: the forwarding mark, which holds the later id of a session. It exists for 60 s after a rotation. */
  forwardingMark(id: string): string {
    return `${this.prefix}sessions:forwarded:${id}`;
  }

  /** STRING, empty: the takeover mark of a session that was taken over. It outlives the entry of the other library. */
  takeoverMark(id: string): string {
    return `${this.prefix}sessions:taken-over:${id}`;
  }

  /**
   * STRING, empty: the revocation mark of an index and a value. All sessions under it were ended, so no session of
   * another library is taken over under it. For `hash`, see repository/hashed-indexes.ts.
   */
  revocationMark(name: string, hash: string): string {
    return `${this.prefix}revoked:${name}:${hash}`;
  }

  /** The member of a bucket for a session. */
  memberOf(id: string): string {
    return `${MEMBER}${id}`;
  }

  /** The id in a member, or the member itself if it has another form. */
  idOfMember(member: string): string {
    return member.startsWith(MEMBER) ? member.slice(MEMBER.length) : member;
  }

  /** SET of the members (`expires:<id>`) of the sessions that may end in a minute. */
  bucket(minute: string): string {
    return `${this.prefix}expirations:${minute}`;
  }

  /**
   * ZSET of the ids that an index lists under a value. The score is the time of the sign-in or, without one, of the
   * creation. The name has no `:`, so no other name and value give this key. For `hash`, see
   * repository/hashed-indexes.ts.
   */
  index(name: string, hash: string): string {
    return `${this.prefix}index:${name}:${hash}`;
  }

  /**
   * HASH: the ledger of a principal, with a place for each of its sessions. It exists only with the option
   * `maxSessions` and several partitions. `hash` is the hash of the name in the index of principals.
   */
  ledger(hash: string): string {
    return `${this.prefix}ledger:${hash}`;
  }

  /** STRING, empty: exists while the broadcast handlers of some instance want events of the type. */
  broadcastWanted(type: SessionEventType): string {
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
