import type { IncomingMessage } from 'node:http';
import type { RequestSession } from './request-session.js';

/** What a session serves: a request with its response, or a message without one. */
export interface SessionHolder {
  /** The session that was found for it, or a new one. */
  readonly session: RequestSession;
  /** The request of Node.js; of a message, the one that opened its connection. */
  readonly request: IncomingMessage;
  /** Sends the response; undefined where there is none. */
  readonly commit: { readonly headersSent: boolean } | undefined;
}
