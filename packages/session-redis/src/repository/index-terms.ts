import { createHash } from 'node:crypto';
import type { IndexChanges, SessionChange } from '@nest-session/core/store';

/**
 * What Redis has as the value of an index: the SHA-256 of the value, base64url. Names of users would otherwise stand in keys,
 * which every trace of a command shows.
 */
export function indexTerm(value: string): string {
  return createHash('sha256').update(value).digest('base64url');
}

/** The same of the values of several indexes. */
export function indexTerms(changes: IndexChanges): IndexChanges {
  if (changes.size === 0) return changes;
  return new Map([...changes].map(([name, value]) => [name, value === null ? null : indexTerm(value)]));
}

/** A change with the values of indexes as Redis has them. */
export function inIndexTerms<Change extends SessionChange>(change: Change): Change {
  if (change.kind === 'touch') return change;
  if (change.kind === 'delete') {
    const { listed } = change;
    return listed ? { ...change, listed: { ...listed, value: indexTerm(listed.value) } } : change;
  }
  const { indexes, limit } = change;
  if (indexes.size === 0 && !limit) return change;
  const limitOfTerm = limit && { ...limit, principal: indexTerm(limit.principal) };
  return { ...change, indexes: indexTerms(indexes), limit: limitOfTerm };
}
