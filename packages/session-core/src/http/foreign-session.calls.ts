import { type SessionRepository, storeCallsOf } from '../repository/session.repository.js';
import type { Session } from '../session/session.js';
import type { ForeignSession } from './session-takeover.js';

/**
 * Moves a session of another library to an id of this one, also when `existing` was moved before: the process may have
 * ended before the other library lost it. @throws SessionStoreError when the store failed
 */
export async function moveForeign(
  repository: SessionRepository,
  foreign: Pick<ForeignSession, 'move'>,
  id: string,
  existing: Session | null = null,
): Promise<Session | null> {
  await storeCallsOf(repository).takeOver(id, () => foreign.move(id));
  return existing ?? repository.findById(id);
}

/**
 * Ends a session of another library there; otherwise the next request would open it. Resolves to whether there was one.
 * @throws SessionStoreError when the store failed
 */
export function endForeign(
  repository: SessionRepository,
  foreign: Pick<ForeignSession, 'end'>,
  id: string,
): Promise<boolean> {
  return storeCallsOf(repository).run(() => foreign.end(id));
}
