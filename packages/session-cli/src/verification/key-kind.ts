import type { PartitionKeys, Partitions } from '@nest-session/redis-events/internal';
import type { Redis } from 'ioredis';
import type { ExpectedKey, Problem } from '../scripts/verification/verification.scripts.js';

/** A key whose kind is known. */
export interface FoundKey<Keys extends PartitionKeys> {
  readonly key: string;
  readonly partition: Keys;
  /** The id, minute, name or group in its name; empty where there is none. */
  readonly part: string;
}

/** What was looked at in one call. */
export interface Look {
  readonly items: number;
  readonly problems: readonly Problem[];
}

/** What looks at the keys of one kind. */
interface Looks<Keys extends PartitionKeys> {
  /** Looks at some of the keys, which are in one partition. */
  readonly verify?: (partition: Keys, parts: readonly string[]) => Promise<Problem[]>;
  /** Looks at some members, or fields, of a key. */
  readonly items?: (found: FoundKey<Keys>, items: readonly string[]) => Promise<Problem[]>;
  /** Looks at what else is in a key, a few entries at a time. */
  readonly contents?: (found: FoundKey<Keys>) => AsyncIterable<Look>;
}

/** The keys of one kind. */
export interface KeyKind<Keys extends PartitionKeys> extends Looks<Keys>, Pick<ExpectedKey, 'type' | 'life'> {
  /** Matches the name after the prefix of the partition, exactly: another namespace may begin with this one. */
  readonly name: RegExp;
}

/** A row of the table of all keys. */
export function keys<Keys extends PartitionKeys>(
  name: RegExp,
  type: ExpectedKey['type'],
  life: ExpectedKey['life'],
  looks: Looks<Keys> = {},
): KeyKind<Keys> {
  return { name, type, life, ...looks };
}

export const PER_CALL = 50;
export const MINUTE = 60_000;
export const DAY = 86_400_000;

/**
 * Returns the ids or members of a partition that belong to another one. None while they are being moved to another
 * number of partitions, where they may stand in either: that is recorded before the first one is moved.
 */
export async function misplacedParts<Keys extends PartitionKeys>(
  client: Redis,
  partitions: Partitions<Keys>,
  partition: Keys,
  parts: readonly string[],
): Promise<readonly string[]> {
  const misplaced = parts.filter((part) => partitions.of(part) !== partition);
  if (misplaced.length === 0) return misplaced;
  // After they were found: whatever has begun since has not put them there.
  const [recorded] = await client.hmget(partitions.meta, 'partitions');
  return recorded === `${partitions.count}` ? misplaced : [];
}
