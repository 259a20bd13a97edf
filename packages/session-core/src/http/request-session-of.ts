import type { IncomingMessage } from 'node:http';
import { DetachedSession } from './detached-session.js';
import type { RequestSession } from './request-session.js';
import { ResponseCommit } from './response-commit.js';

/**
 * The session of a request of Node.js. Of a request that opened a connection to a gateway, it is the session of the
 * message that is being handled, or else of the handshake. Undefined when there is none, or the request is excluded.
 */
export function requestSessionOf(request: IncomingMessage): RequestSession | undefined {
  return ResponseCommit.of(request)?.session ?? DetachedSession.of(request);
}
