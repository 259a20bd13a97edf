import { PRINCIPAL_NAME_INDEX_NAME, type Session } from '../session/session.js';
import { TrackedSession } from '../session/tracked-session.js';

/** Of the sessions that a request presents, the index of the one that counts: the first of a principal, or else the first. */
export function indexOfSessionThatCounts(sessions: readonly (Session | null)[]): number {
  // Most requests present one, and nothing of it need be decoded.
  if (sessions.length === 1) return sessions[0] ? 0 : -1;
  const ofPrincipal = sessions.findIndex((session) => principalOf(session) !== undefined);
  return ofPrincipal < 0 ? sessions.findIndex((session) => session !== null) : ofPrincipal;
}

/** The principal of a session; undefined without one, and when it cannot be decoded. */
export function principalOf(session: Session | null): string | undefined {
  const name = session && TrackedSession.of(session).peekAttribute(PRINCIPAL_NAME_INDEX_NAME);
  return typeof name === 'string' ? name : undefined;
}
