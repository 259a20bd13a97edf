import type { SessionRecord } from '../session/session-record.js';
import type { Session } from '../session/session.js';
import { isWellFormedIdOrToken } from '../session/session-token.js';
import { sizesOf } from '../session/session-bounds.js';
import { type SessionRepository, storeCallsOf, storePrimitivesOf } from './session.repository.js';

/** A live session, and what its store has of it. Do not change the session. */
export interface InspectedSession {
  /** What the store has. */
  readonly record: SessionRecord;
  /** The session of the record. */
  readonly session: Session;
}

type Look = (ids: readonly string[]) => Promise<SessionRecord[]>;

const looks = new WeakMap<SessionRepository, Look>();

/** Sets how a store loads sessions for `inspectSessions()`, if not as for a request. */
export function lookBy(repository: SessionRepository, look: Look): void {
  looks.set(repository, look);
}

/**
 * Loads live sessions for somebody who looks at them, in any order. It does not count as an access.
 * @throws SessionStoreError when the store failed
 */
export async function inspectSessions(
  repository: SessionRepository,
  ids: readonly string[],
): Promise<InspectedSession[]> {
  const wellFormed = [...new Set(ids)].filter(isWellFormedIdOrToken);
  if (wellFormed.length === 0) return [];
  const { load: loadForRequest, restore } = storePrimitivesOf(repository);
  const load = looks.get(repository) ?? loadForRequest;
  const records = await storeCallsOf(repository).read('load', () => load(wellFormed), sizesOf);
  return records.map((record) => ({ record, session: restore(record) }));
}
