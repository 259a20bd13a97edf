import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SessionKey, SessionToken } from '../session/session-key.js';

/** How the token of a session travels between client and server. Never asks the store. */
export abstract class SessionIdResolver {
  /** The request headers that carry the token, by which answers that use the session vary. */
  abstract readonly headers: readonly string[];

  /**
   * The keys of the well-formed tokens that the request presents, in the order in which they are tried: the first that
   * opens a session counts. At most a handful; all of them are looked up. Never throws.
   */
  abstract resolve(request: IncomingMessage): readonly SessionKey[];

  /**
   * Gives the client the token of a session that was created or got a new id, and is stored. `presented` is the one of
   * the keys of this request that opened the session, or the first when none did. Never throws.
   */
  abstract send(request: IncomingMessage, response: ServerResponse, token: SessionToken, presented?: SessionKey): void;

  /** Has the client forget the token it has presented: this very request has ended the session. Never throws. */
  abstract expire(request: IncomingMessage, response: ServerResponse, presented?: SessionKey): void;
}
