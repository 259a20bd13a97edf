import type { RequestSession } from './request-session.js';

/** What a session serves: a request with its response, or a message without one. */
export interface SessionHolder {
  /** The session that was found for it, or a new one. */
  readonly session: RequestSession;
}
