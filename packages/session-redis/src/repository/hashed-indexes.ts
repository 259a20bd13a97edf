import { createHash } from 'node:crypto';
import type { IndexChanges, SessionChange } from '@nest-session/core/store';

/**
 * What Redis has as the value of an index: the SHA-256 of the value, base64url. Names of users would otherwise stand in keys,
 * which MONITOR, SLOWLOG and SCAN show.
 */
export function hashOfValue(value: string): string {
  return createHash('sha256').update(value).digest('base64url');
}

/** The same of the values of several indexes. */
export function hashedIndexes(changes: IndexChanges): IndexChanges {
  if (changes.size === 0) return changes;
  return new Map([...changes].map(([name, value]) => [name, value === null ? null : hashOfValue(value)]));
}

/** A change with the hashes of the values of its indexes. */
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
