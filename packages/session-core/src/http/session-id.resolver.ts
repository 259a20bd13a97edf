import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SessionKey, SessionToken } from '../session/session-key.js';

/** How the token of a session travels between client and server. Never asks the store. */
export abstract class SessionIdResolver {
  /** The request header that carries the token, by which answers that use the session vary. */
  abstract readonly header: string;

  /** The key of the well-formed token that the request presents; undefined when there is none. Never throws. */
  abstract resolve(request: IncomingMessage): SessionKey | undefined;

  /** Gives the client the token of a session that was created or got a new id, and is stored. */
  abstract send(request: IncomingMessage, response: ServerResponse, token: SessionToken): void;

  /** Has the client forget its token: this very request has ended the session. */
  abstract expire(request: IncomingMessage, response: ServerResponse): void;
}
