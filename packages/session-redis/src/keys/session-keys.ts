import type { SessionEventType } from '@nest-session/core/internal';

// These have a meaning in a pattern of Redis or in a hash tag, so a namespace with them could reach stray keys.
const FORBIDDEN = /[{}*[\]?\\]/;

const MEMBER = 'expires:';

/** What the field of an attribute in a session hash begins with, as in Spring Session. */
export const ATTRIBUTE_FIELD = 'sessionAttr:';

/** What is wrong with a namespace, as the end of the sentence "Option `namespace` ..."; undefined when it is valid. */
export function namespaceProblem(namespace: string): string | undefined {
  if (namespace.trim() === '') return 'must not be empty';
  if (FORBIDDEN.test(namespace)) return 'must not contain { } * [ ] ? or \\';
  return undefined;
}

/**
 * The names of the keys of one partition. With several partitions, all keys of one carry the same hash tag, which
 * session-partitions.ts chooses: Redis Cluster keeps them in one slot, where one script may change them. The scripts
 * derive from `prefix` the keys that only Redis can know, such as the bucket of a minute, and spell their names as well.
 */
export class SessionKeys {
  /** Whether scripts tell of new events: not where an instance can wait for those of the only partition. */
  readonly hasSignals: boolean;
  /** Prefix of every key of the partition. */
  readonly prefix: string;
  /** ZSET of the minutes that have a bucket. */
  readonly bucketList: string;
  /** ZSET of the ids of the sessions that are in no bucket; the score is their end, epoch ms, or a time before it. */
  readonly ends: string;
  /** HASH: `at`, until when the sessions that have begun are over; `ended`, the epoch whose sessions are all ended. */
  readonly epoch: string;
  /** STRING: the instance whose turn the cleanup is. It exists until the next instance may take it. */
  readonly cleanup: string;
  /**
   * STREAM of session events. The sharded channel of the same name tells, with several partitions, what an instance would
   * otherwise find out only later; see connection/partition-signals.ts.
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
   * HASH: `scanned`, the position up to which creations and changes of id have made room for ends; `created` and
   * `id-changed`, that of the last event of the type that has. Missing when none has.
   */
  readonly thinned: string;
  /** HASH by group: the number of events that were trimmed before the group had handled them. */
  readonly dropped: string;

  /** `tag`: the hash tag of the partition, chosen in session-partitions.ts; empty when there is only one partition. */
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

  /** STRING, empty: the shadow key, which exists exactly as long as the session is alive. */
  shadow(id: string): string {
    return `${this.prefix}sessions:expires:${id}`;
  }

  /** STRING, the forwarding mark: the later id of a session. It exists for 60 s after the id was changed. */
  forwardingMark(id: string): string {
    return `${this.prefix}sessions:forwarded:${id}`;
  }

  /** STRING, empty, the takeover mark: the session was taken over from another library. It outlives the entry there. */
  takeoverMark(id: string): string {
    return `${this.prefix}sessions:taken-over:${id}`;
  }

  /**
   * STRING, empty, the revocation mark of an index and a value: no session that another library kept is taken over under
   * it any more, because all were ended. `hash`: see repository/hashed-indexes.ts.
   */
  revocationMark(name: string, hash: string): string {
    return `${this.prefix}revoked:${name}:${hash}`;
  }

  /** The member of a bucket for a session. */
  memberOf(id: string): string {
    return `${MEMBER}${id}`;
  }

  /** The id in a member; the member itself when it has another form. */
  idOfMember(member: string): string {
    return member.startsWith(MEMBER) ? member.slice(MEMBER.length) : member;
  }

  /** SET of the members (`expires:<id>`) of the sessions that may end in a minute. */
  bucket(minute: string): string {
    return `${this.prefix}expirations:${minute}`;
  }

  /**
   * ZSET of the ids in an index under a value; the score is the time of the sign-in, else of the creation. The name has no
   * `:`, so that no other name and value give this key. `hash`: the hash of the value, see repository/hashed-indexes.ts.
   */
  index(name: string, hash: string): string {
    return `${this.prefix}index:${name}:${hash}`;
  }

  /**
   * HASH: the ledger of a principal, with a place for each of its sessions; only where the option `maxSessions` is set and
   * there are several partitions. `hash`: that of the name in the index of principals.
   */
  ledger(hash: string): string {
    return `${this.prefix}ledger:${hash}`;
  }

  /** STRING, empty: exists while broadcast handlers of an instance want events of the type. */
  broadcastWanted(type: SessionEventType): string {
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
