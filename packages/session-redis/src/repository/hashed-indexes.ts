import { createHash } from 'node:crypto';
import { indexTerm } from '@nest-session/core/internal';
import type { IndexChanges, SessionChange } from '@nest-session/core/store';

/**
 * Hashes the value of an index for its key in Redis: SHA-256 in base64url. Otherwise keys would contain user names, and
 * MONITOR, SLOWLOG and SCAN show keys.
 */
export function hashOfValue(value: string): string {
  return createHash('sha256').update(value).digest('base64url');
}

/** Hashes the name of a principal for its key in the index of principals, which lists long names by another value. */
export function hashOfPrincipal(name: string): string {
  return hashOfValue(indexTerm(name));
}

/** Hashes the values of several indexes. */
export function hashedIndexes(changes: IndexChanges): IndexChanges {
  if (changes.size === 0) return changes;
  return new Map([...changes].map(([name, value]) => [name, value === null ? null : hashOfValue(value)]));
}

/** Returns a change with the values of its indexes hashed. */
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
