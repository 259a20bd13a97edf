import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SecurityLevel } from '../option-reading/security-level.js';
import type { SessionToken } from '../session/session-token.js';
import type { SetCookieAttributes } from './cookie-attributes.js';

/** The client that a response goes to. */
export interface SessionClient {
  /** Of the tokens in its request, the one that opened the session; the first when none did. */
  readonly presented?: SessionToken | undefined;
  /** Whether its session is remembered: see `RememberMe`. */
  readonly isRemembered: boolean;
  /** The lifetime that its session asks for, in seconds; 0: until the browser is closed. Unset: as configured. */
  readonly maxAge?: number | undefined;
}

/** How many tokens of a request are looked up. */
export const MOST_TOKENS = 64;
/** Why a resolver did not take what a request has in the place of a token. */
export type TokenRefusal = 'malformed' | 'unsigned' | 'badly signed';

/** Hears of what a resolver did not take. True when a listener was told: then the resolver need not log it. */
export type TokenRefusalListener = (request: IncomingMessage, refusal: TokenRefusal) => boolean;

/** Reads tokens from requests and writes them to responses. Never asks the store. */
export abstract class SessionIdResolver {
  /** The request headers that carry the token; responses that use the session get them in `Vary`. */
  abstract readonly headers: readonly string[];

  /**
   * The well-formed tokens in the request, each once. The first 64 are looked up: up to five in one round trip, more in two,
   * and more than twenty in three. The first that opens the session of a principal counts, or else the first that opens a session. Never throws. Call
   * `onRefused`, where it is given, for what stands in the place of a token and is none: security events are made of that.
   */
  abstract resolve(request: IncomingMessage, onRefused?: TokenRefusalListener): readonly SessionToken[];

  /** Sends the client the token of a session that was created or rotated, and is stored. Never throws. */
  abstract send(request: IncomingMessage, response: ServerResponse, token: SessionToken, client: SessionClient): void;

  /** Makes the client forget the token that it presented, because its request ended the session. Never throws. */
  abstract expire(request: IncomingMessage, response: ServerResponse, client: SessionClient): void;

  /**
   * The lifetime of a sent token in seconds; undefined: unlimited. A token with a lifetime is sent again when its
   * session is touched. Called without `presented` to ask what any client would be sent.
   */
  maxAge(_client: SessionClient): number | undefined {
    return undefined;
  }

  /** The attributes of the cookie that a request would be sent; undefined where there is no cookie. Never throws. */
  cookieFor(_request: IncomingMessage): SetCookieAttributes | undefined {
    return undefined;
  }

  /**
   * Whether an application with this option `security` may use the resolver; the start fails otherwise. True unless a
   * resolver knows better.
   */
  meets(_security: SecurityLevel): boolean {
    return true;
  }
}
