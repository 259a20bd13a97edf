import { createHash } from 'node:crypto';
import { indexTerm } from '@nest-session/core/internal';
import type { IndexChanges, SessionChange } from '@nest-session/core/store';
import { PartitionKeys } from '@nest-session/redis-events/internal';

const MEMBER = 'expires:';

/** The prefix of attribute fields in a session hash, as in Spring Session. */
export const ATTRIBUTE_FIELD = 'sessionAttr:';

/** The source of a regular expression for an id in the name of a key: longer than any word that stands there. */
export const ID_PATTERN = String.raw`[\w-]{22,}`;

export class SessionKeys extends PartitionKeys {
  /** ZSET of the minutes that have a bucket. */
  readonly bucketList = `${this.prefix}expirations`;
  /** ZSET of the ids of the sessions that are in no bucket. The score is their end in epoch ms, or an earlier time. */
  readonly ends = `${this.prefix}ends`;
  /** HASH: `at` ends what began until then, and was raised at `raised`; `ended`: the epoch whose sessions are ended. */
  readonly epoch = `${this.prefix}epoch`;

  session(id: string): string {
    return `${this.prefix}sessions:${id}`;
  }

  /** STRING, empty: the shadow key. It exists exactly as long as the session is alive. */
  shadow(id: string): string {
    return `${this.prefix}sessions:expires:${id}`;
  }

  /** STRING: the forwarding mark, the later id of a session. It exists for 60 s after a rotation. */
  forwardingMark(id: string): string {
    return `${this.prefix}sessions:forwarded:${id}`;
  }

  /** STRING, empty: the takeover mark. It outlives the entry of the other library. */
  takeoverMark(id: string): string {
    return `${this.prefix}sessions:taken-over:${id}`;
  }

  /** STRING: when all sessions under a value were ended, in epoch ms. No request or takeover from before signs in. */
  revocationMark(name: string, hash: string): string {
    return `${this.prefix}revoked:${name}:${hash}`;
  }

  /** STRING, a number: what is remembered for a while under a hash, such as a logout of an identity provider. */
  mark(name: string): string {
    return `${this.prefix}marks:${name}`;
  }

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

  /** ZSET of ids by the sign-in, or the creation. A name has no `:`, so no other name and value give this key. */
  index(name: string, hash: string): string {
    return `${this.prefix}index:${name}:${hash}`;
  }

  /** Any type but ZSET: what stood in the place of that index. */
  strayIndex(name: string, hash: string): string {
    return `${this.prefix}stray:index:${name}:${hash}`;
  }

  /** HASH: the ledger of a principal, for `maxSessions` across partitions. `hash`: hashOfPrincipal() of the name. */
  ledger(hash: string): string {
    return `${this.prefix}ledger:${hash}`;
  }
}

/** SHA-256 in base64url of the value of an index. MONITOR, SLOWLOG and SCAN show keys, and must show no user names. */
export function hashOfValue(value: string): string {
  return createHash('sha256').update(value).digest('base64url');
}

/** The index of principals lists long names by another value. */
export function hashOfPrincipal(name: string): string {
  return hashOfValue(indexTerm(name));
}

export function hashedIndexes(changes: IndexChanges): IndexChanges {
  if (changes.size === 0) return changes;
  return new Map([...changes].map(([name, value]) => [name, value === null ? null : hashOfValue(value)]));
}

export function withHashedIndexes<Change extends SessionChange>(change: Change): Change {
  if (change.kind === 'touch') return change;
  if (change.kind === 'delete') {
    const { listed } = change;
    return listed ? { ...change, listed: { ...listed, value: hashOfValue(listed.value) } } : change;
  }
  const { indexes, limit } = change;
  if (indexes.size === 0 && !limit) return change;
  const hashed = limit && { ...limit, principal: hashOfValue(limit.principal) };
  return { ...change, indexes: hashedIndexes(indexes), limit: hashed };
}
