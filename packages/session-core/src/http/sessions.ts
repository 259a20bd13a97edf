import { Inject, Injectable } from '@nestjs/common';
import { WarnOnce } from '../logging/warn-once.js';
import type { Session } from '../session/session.js';
import { isUpgrade, requestOf } from './request-of.js';
import { RequestSessions } from './request-sessions.js';
import { SessionExchange } from './session-exchange.js';

/** The sessions of the application, for code that has no `@Session()`. */
@Injectable()
export class Sessions {
  readonly #log = new WarnOnce();

  constructor(@Inject(RequestSessions) private readonly requests: RequestSessions) {}

  /**
   * The session that a request presents: of an upgrade, in a server of ws, in `handleConnection()` of a gateway. Pass the
   * request of Node.js, Express or Fastify, a socket of socket.io, or the client of a gateway. Each call asks the store,
   * and renews the idle timeout when a touch is due; only an HTTP request has one session for all calls.
   *
   * Resolves to null when the request presents no live session, and for a WebSocket that a page of a foreign origin opens.
   * Changes are saved by `await session.save()`. Over an open connection, the session id cannot be changed.
   * @throws SessionStoreError when the store failed; TypeError for anything but a request
   */
  async load(request: object): Promise<Session | null> {
    const incoming = requestOf(request);
    const exchange = isUpgrade(incoming) ? undefined : SessionExchange.of(incoming);
    if (exchange) {
      const { session } = exchange;
      return session.existing || session.isUnavailable ? session.session : null;
    }
    if (isUpgrade(incoming) && !this.requests.allowsOriginOf(incoming)) {
      this.#log.warn('origin', FOREIGN_ORIGIN);
      return null;
    }
    const { session } = await this.requests.detached(incoming);
    void session.touch.send();
    return session.existing || session.isUnavailable ? session.session : null;
  }
}

const FOREIGN_ORIGIN =
  'A WebSocket from a page of another origin got no session: its Origin is not the Host. List the origins of your pages ' +
  'in SessionWebSocketModule.forRoot({ origins }) of @nest-session/websockets';
