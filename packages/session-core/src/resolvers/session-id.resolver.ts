import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SecurityLevel } from '../option-reading/strict-security.js';
import type { SessionToken } from '../session/session-token.js';
import type { SetCookieAttributes } from './cookie.options.js';

/** The client that a response goes to. */
export interface SessionClient {
  /** The token that opened the session. If no token of the request did, the first one. */
  readonly presented?: SessionToken | undefined;
  /** Whether its session is remembered. See `RememberMe`. */
  readonly isRemembered: boolean;
  /**
   * The lifetime that its session asks for, in seconds; 0 means until the browser is closed. If unset, the configured
   * lifetime applies.
   */
  readonly maxAge?: number | undefined;
  /** @internal What its cookie has behind the token. */
  readonly turn?: string | undefined;
}

/** How many tokens of a request are looked up, and of cookies of one name: each may cost one HMAC per signing key. */
export const MOST_TOKENS = 64;
/** Why a resolver refused the text that a request has in place of a token. */
export type TokenRefusal = 'malformed' | 'unsigned' | 'badly signed';

/**
 * Receives the refusals of a resolver. Returns true when it reported the refusal, so that the resolver does not log it.
 */
export type TokenRefusalListener = (request: IncomingMessage, refusal: TokenRefusal) => boolean;

/** In words of OpenAPI. */
export interface TokenCarrier {
  readonly in: 'cookie' | 'header';
  readonly name: string;
}

/** Where a browser has the proof that a session is its own. */
export interface DeviceCookie {
  readonly name: string;
  attributesFor(this: void, request: IncomingMessage): SetCookieAttributes;
}

/** Reads tokens from requests and writes them to responses. Never asks the store. */
export abstract class SessionIdResolver {
  /** The request headers that carry the token; responses that use the session get them in `Vary`. */
  abstract readonly headers: readonly string[];

  /**
   * Returns the well-formed tokens in the request, each once. Never throws. The library looks up the first 64: up to
   * five in one round trip, up to twenty in two, and more in three. The first token that opens the session of a
   * principal counts. If none does, the first token that opens a session counts. Call `onRefused`, if given, for a
   * malformed text in place of a token. The library turns the call into a security event.
   */
  abstract resolve(request: IncomingMessage, onRefused?: TokenRefusalListener): readonly SessionToken[];

  /** Sends the client the token of a session that was created or rotated and is already stored. Never throws. */
  abstract send(request: IncomingMessage, response: ServerResponse, token: SessionToken, client: SessionClient): void;

  /** Makes the client delete the token that it presented, because its request ended the session. Never throws. */
  abstract expire(request: IncomingMessage, response: ServerResponse, client: SessionClient): void;

  /**
   * The lifetime of a sent token in seconds, or undefined if it is unlimited. A token with a lifetime is sent again
   * when its session is touched. It is called without `presented` for the lifetime that any client would get.
   */
  maxAge(_client: SessionClient): number | undefined {
    return undefined;
  }

  /** The attributes of the cookie in the response to a request, or undefined if it sets no cookie. Never throws. */
  cookieFor(_request: IncomingMessage): SetCookieAttributes | undefined {
    return undefined;
  }

  /** @internal The cookies and headers that have the token. */
  get carriers(): readonly TokenCarrier[] {
    return this.headers.filter((name) => name !== 'Cookie').map((name) => ({ in: 'header', name }));
  }

  /** @internal Where a browser without a session keeps its CSRF token; undefined when tokens are in no cookie. */
  visitorCookie(_request: IncomingMessage): ({ readonly name: string } & SetCookieAttributes) | undefined {
    return undefined;
  }

  /** @internal Undefined when tokens are in no cookie. `alias`: that of the session, where it is not the request's. */
  deviceCookie(_request: IncomingMessage, _alias?: string): DeviceCookie | undefined {
    return undefined;
  }

  /** Whether an application with this `security` option may use the resolver; otherwise it does not start. */
  meets(_security: SecurityLevel): boolean {
    return true;
  }
}
