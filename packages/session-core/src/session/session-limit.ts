import { indexTerm } from './session-indexes.js';
import type { CreateSession, IndexChanges, SessionLimit } from './session-change.js';
import { type SessionInfo, signInTimeOf } from './session-info.js';
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
  maxSessions: MaxSessions | undefined,
  indexes: IndexChanges,
  principalName?: unknown,
): SessionLimit | undefined {
  if (!maxSessions) return undefined;
  const { perPrincipal, whenReached } = maxSessions;
  let principal = indexes.get(PRINCIPAL_NAME_INDEX_NAME);
  if (principal === undefined) principal = typeof principalName === 'string' ? indexTerm(principalName) : undefined;
  return principal ? { principal, atMost: perPrincipal, whenReached } : undefined;
}

type SignInTimes = Pick<SessionInfo, 'authenticatedAt' | 'creationTime'>;

/**
 * The sessions that end so that a change may list one more under its principal: the earliest sign-in first. Or that the
 * change is refused. In Redis, limit-in-one-partition.lua decides that, or limit-across-partitions.ts with several
 * partitions. `othersOf`: the other live sessions of a principal. Of two sign-ins at one time, the later one comes
 * last.
 */
export function sessionsToEnd<Session extends SignInTimes>(
  { limit, indexes }: Pick<CreateSession, 'limit' | 'indexes'>,
  othersOf: (principal: string) => readonly Session[],
): readonly Session[] | 'refused' {
  if (!limit || indexes.get(PRINCIPAL_NAME_INDEX_NAME) !== limit.principal) return [];
  const surplus = othersOf(limit.principal)
    .toReversed()
    .toSorted(byLatestSignIn)
    .slice(limit.atMost - 1);
  if (surplus.length > 0 && limit.whenReached === 'refuse') return 'refused';
  return surplus.toReversed();
}

/** The latest sign-in first. */
function byLatestSignIn(one: SignInTimes, other: SignInTimes): number {
  return signInTimeOf(other) - signInTimeOf(one);
}
