import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SessionToken } from '../session/session-token.js';

/** What is known of the client that is answered. */
export interface SessionClient {
  /** Of the tokens that its request presents, the one that opened the session, or the first when none did. */
  readonly presented?: SessionToken | undefined;
  /** Whether it is to stay signed in: see `RememberMe`. */
  readonly isRemembered: boolean;
}

/** How the token of a session travels between client and server. Never asks the store. */
export abstract class SessionIdResolver {
  /** The request headers that carry the token, by which answers that use the session vary. */
  abstract readonly headers: readonly string[];

  /**
   * The well-formed tokens that the request presents, in the order in which they are tried: the first that opens a
   * session counts. At most a handful, each once; all of them are looked up. Never throws.
   */
  abstract resolve(request: IncomingMessage): readonly SessionToken[];

  /** Gives the client the token of a session that was created or got a new id, and is stored. Never throws. */
  abstract send(request: IncomingMessage, response: ServerResponse, token: SessionToken, client: SessionClient): void;

  /** Has the client forget the token it has presented: this very request has ended the session. Never throws. */
  abstract expire(request: IncomingMessage, response: ServerResponse, client: SessionClient): void;

  /**
   * Seconds for which a client keeps what it is sent; undefined: as long as it likes. What has an end is sent again when
   * the session is renewed. Asked without `presented` for what any client would be sent.
   */
  maxAge(_client: SessionClient): number | undefined {
    return undefined;
  }
}
