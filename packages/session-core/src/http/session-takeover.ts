import type { IncomingMessage, ServerResponse } from 'node:http';
import { type SessionRepository, storeCallsOf } from '../repository/session.repository.js';
import type { SessionToken } from '../session/session-token.js';
import type { Session } from '../session/session.js';

export interface SessionTakeover {
  /** What a request presents of the other library, in its order; empty when it presents nothing valid. Never throws. */
  find(request: IncomingMessage): readonly ForeignSession[];
  /** The session that the other library knows by an id, if `of` is undefined or its principal. Never throws. */
  named(id: string, of?: string): NamedForeignSession;
}

export interface ForeignSession {
  /** The token of the session once it is moved: always the same, so that parallel requests meet in one session. */
  readonly token: SessionToken;
  /**
   * Moves the session to an id of this library, unless that was done before. From then on the other library does not
   * have it. Asks the store. Resolves to whether this call has stored the session.
   * @param device the text of the client that presented it; unset: none is recorded
   * @throws SessionStoreError when the store failed
   */
  move(id: string, device?: string): Promise<boolean>;
  /**
   * Ends the session in the other library, and keeps it from being moved to an id of this library. What has been moved
   * before stays. Asks the store. Resolves to whether there was one. @throws SessionStoreError when the store failed
   */
  end(id: string): Promise<boolean>;
  /** Makes the client forget what it presented. Never throws. */
  expire(response: ServerResponse): void;
}

export interface NamedForeignSession extends Pick<ForeignSession, 'token' | 'end'> {
  /** Tells the application that neither library has the session under this name. */
  reportUnknown(): void;
}

/** Also where `existing` was moved before: the process may have ended before the other library lost it. */
export async function moveForeign(
  repository: SessionRepository,
  foreign: Pick<ForeignSession, 'move'>,
  id: string,
  existing: Session | null = null,
): Promise<Session | null> {
  await storeCallsOf(repository).takeOver(id, () => foreign.move(id));
  return existing ?? repository.findById(id);
}

/** Otherwise the next request would open it. Resolves to whether there was one. */
export function endForeign(
  repository: SessionRepository,
  foreign: Pick<ForeignSession, 'end'>,
  id: string,
): Promise<boolean> {
  return storeCallsOf(repository).run(() => foreign.end(id));
}
