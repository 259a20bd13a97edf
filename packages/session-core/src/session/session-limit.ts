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
 * The limit for a save that lists the session under a principal, or gives a new id to one that is listed.
 * `principalName`: the principal of a session that gets a new id.
 */
export function limitOf(
  { perPrincipal, whenReached }: MaxSessions,
  indexes: IndexChanges,
  principalName: unknown,
): SessionLimit | undefined {
  let principal = indexes.get(PRINCIPAL_NAME_INDEX_NAME);
  if (principal === undefined) principal = typeof principalName === 'string' ? indexTerm(principalName) : undefined;
  return principal ? { principal, atMost: perPrincipal, whenReached } : undefined;
}
