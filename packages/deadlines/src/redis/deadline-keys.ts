import { createHash } from 'node:crypto';
import { type EntryKind, type NamespaceOwner, PartitionKeys, Partitions } from '@nest-session/redis-events/internal';

/** The names of the keys of one partition of deadlines. A deadline is a member: the hash of its name and key. */
export class DeadlineKeys extends PartitionKeys {
  /** ZSET of the names of which deadlines wait. The score is the epoch ms of the first one, or an earlier time. */
  readonly names = `${this.prefix}due`;
  readonly deadlines = `${this.prefix}deadlines:`;

  /** ZSET of the deadlines of a name that wait. The score is the time in epoch ms. */
  due(name: string): string {
    return `${this.names}:${name}`;
  }

  /** HASH: a deadline that waits, or for an hour the field `fired` of one that has come. */
  deadline(member: string): string {
    return this.deadlines + member;
  }
}

const OF_DEADLINES: NamespaceOwner = { holds: 'deadlines', module: 'RedisDeadlineModule' };

/** The partitions of a namespace of deadlines. `Partitions.of()` takes a member. */
export class DeadlinePartitions extends Partitions<DeadlineKeys> {
  constructor(namespace: string, count = 1) {
    super(namespace, count, DeadlineKeys, OF_DEADLINES);
  }
}

// Bytes. Nobody finds two keys of one hash with so many.
const HASH_BYTES = 20;

/**
 * The member of a key. A key may be a name or an address, and stands in no name of a key of Redis. Digits and lower
 * case letters, so that scripts order members as Redis does in every locale.
 */
export function memberOf(name: string, key: string): string {
  return createHash('sha256')
    .update(`${name}\n${key}`)
    .digest('hex')
    .slice(0, 2 * HASH_BYTES);
}

/** The entries that fire-deadlines adds. They bring their data; groups and broadcasts want them by their names. */
export const DEADLINE_ENTRIES: EntryKind = { types: [], makingRoom: [], onDemand: [], dueSets: ['due'] };
