import { PartitionKeys } from '../partitions/partition-keys.js';

const MEMBER = 'expires:';

/** What the field of an attribute in a session hash begins with, as in Spring Session. */
export const ATTRIBUTE_FIELD = 'sessionAttr:';

/** The names of the keys of one partition of sessions. */
export class SessionKeys extends PartitionKeys {
  /** ZSET of the minutes that have a bucket. */
  readonly bucketList: string;
  /** ZSET of the ids of the sessions that are in no bucket; the score is their end, epoch ms, or a time before it. */
  readonly ends: string;
  /** HASH: `at`, until when the sessions that have begun are over; `ended`, the epoch whose sessions are all ended. */
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
}
