import { indexTerm } from './index-terms.js';
import type { IndexChanges, SessionLimit } from './session-change.js';
import { PRINCIPAL_NAME_INDEX_NAME } from './session.js';

/** How many live sessions a principal may have. */
export interface MaxSessions {
  /** The number of sessions. */
  readonly perPrincipal: number;
  /** What happens to a sign-in when there would be more. */
  readonly whenReached: SessionLimit['whenReached'];
}

/**
 * The limit for a save that lists the session under a principal, or gives a new id to one that is. `rotated`: the principal
 * that a session with a new id has.
 */
export function limitOf(
  maxSessions: MaxSessions | undefined,
  indexes: IndexChanges,
  rotated: () => unknown,
): SessionLimit | undefined {
  if (!maxSessions) return undefined;
  const { perPrincipal, whenReached } = maxSessions;
  let principal = indexes.get(PRINCIPAL_NAME_INDEX_NAME);
  if (principal === undefined) {
    const name = rotated();
    principal = typeof name === 'string' ? indexTerm(name) : undefined;
  }
  return principal ? { principal, atMost: perPrincipal, whenReached } : undefined;
}
