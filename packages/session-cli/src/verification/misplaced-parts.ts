import type { Redis } from 'ioredis';
import type { PartitionKeys, Partitions } from '@nest-session/redis-events/internal';

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
