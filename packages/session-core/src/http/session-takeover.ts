import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SessionToken } from '../session/session-token.js';

/** Finds the sessions that another library keeps, and moves each of them to the store at its first use. */
export interface SessionTakeover {
  /** What a request presents of the other library; undefined when it presents nothing valid. Never throws. */
  find(request: IncomingMessage): ForeignSession | undefined;
}

/** A session of another library, as a request presents it. */
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
  /** Makes the client forget what it presented. Never throws. */
  expire(response: ServerResponse): void;
}
