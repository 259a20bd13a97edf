import { PartitionKeys } from '@nest-session/redis-events/internal';

const MEMBER = 'expires:';

/** The prefix of attribute fields in a session hash, as in Spring Session. */
export const ATTRIBUTE_FIELD = 'sessionAttr:';

/** The names of the keys of one partition of sessions. */
export class SessionKeys extends PartitionKeys {
  /** ZSET of the minutes that have a bucket. */
  readonly bucketList: string;
  /** ZSET of the ids of the sessions that are in no bucket. The score is their end in epoch ms, or an earlier time. */
  readonly ends: string;
  /**
   * HASH: `at` ends all sessions that began until then, and was raised last at `raised`; `ended` is the epoch whose
   * sessions have all been ended.
   */
  readonly epoch: string;

  constructor(namespace: string, tag?: string) {
    super(namespace, tag);
    this.bucketList = `${this.prefix}expirations`;
    this.ends = `${this.prefix}ends`;
    this.epoch = `${this.prefix}epoch`;
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
   * STRING: the revocation mark of an index and a value: when all sessions under it were ended, in epoch ms. So no
   * session of another library is taken over under it, and of principals, no request that began before signs in. For
   * `hash`, see repository/hashed-indexes.ts.
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

  /** Any type but ZSET: what stood in the place of that index. */
  strayIndex(name: string, hash: string): string {
    return `${this.prefix}stray:index:${name}:${hash}`;
  }

  /**
   * HASH: the ledger of a principal, with a place for each of its sessions. It exists only with the option
   * `maxSessions` and several partitions. `hash` is the hash of the name in the index of principals.
   */
  ledger(hash: string): string {
    return `${this.prefix}ledger:${hash}`;
  }
}

/** The source of a regular expression for an id in the name of a key: longer than any word that stands there. */
export const ID_PATTERN = String.raw`[\w-]{22,}`;
