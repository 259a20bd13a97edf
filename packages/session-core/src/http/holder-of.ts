import type { IncomingMessage } from 'node:http';
import { DetachedSession } from './detached-session.js';
import { SessionExchange } from './session-exchange.js';
import type { SessionHolder } from './session-holder.js';

/**
 * What holds the session of a request of Node.js: its exchange; of a request that opened a connection to a gateway, the
 * message that is being handled, or else the handshake. Undefined when there is none, or the request is excluded.
 */
export function holderOf(request: IncomingMessage): SessionHolder | undefined {
  return SessionExchange.of(request) ?? DetachedSession.of(request);
}
