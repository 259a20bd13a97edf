/**
 * What happened:
 * - `'unknown-token'`: a request presented a well-formed token that opens no session. So do guesses, stolen and planted
 *   cookies of ended sessions, and every browser whose session has expired;
 * - `'malformed-token'`: a cookie or header of the configured name has something else than a token;
 * - `'badly-signed-token'`: a cookie has no signature, or none by `cookie.signingKeys`. `reason` says which;
 * - `'rotated-token'`: a request that presented a token which was replaced less than 60 s ago wanted to start a session. It
 *   got a 409 response;
 * - `'two-principals'`: a request presented live sessions of two users. `principalName` is the one that counted;
 * - `'refused-origin'`: a page of another origin sent a request that `CsrfGuard` refused, or opened a WebSocket that got no
 *   session;
 * - `'refused-csrf-token'`: `CsrfGuard` refused a request. `reason` says whether its token was missing or invalid;
 * - `'limit-reached'`: a limit of the options was reached. `limit` names it.
 */
export type SecurityEventKind =
  | 'unknown-token'
  | 'malformed-token'
  | 'badly-signed-token'
  | 'rotated-token'
  | 'two-principals'
  | 'refused-origin'
  | 'refused-csrf-token'
  | 'limit-reached';

/** What a security event tells of its request. */
export interface RequestFacts {
  /** In upper case, such as `POST`. */
  readonly method?: string | undefined;
  /** The path as the client sent it, without the query; cut after 256 characters. */
  readonly path?: string | undefined;
  /** The address of the client, as the platform gives it; cut after 64 characters. */
  readonly remoteAddress?: string | undefined;
}

/** What is known of a security event. */
export interface SecurityFacts extends RequestFacts {
  /** Of the session, or of the token that opened none. */
  readonly sessionId?: string | undefined;
  /** The name of the signed-in user whose session it is. */
  readonly principalName?: string | undefined;
  /** Why a token or request was refused, where a kind has several reasons. */
  readonly reason?: string | undefined;
  /** The name of the option whose limit was reached. */
  readonly limit?: string | undefined;
}

/**
 * Something that an attacker may have done, as this process has seen it: for `@OnSecurityEvent` methods. It has no token, no
 * cookie and no value of an attribute. Its texts are not: `path`, `remoteAddress` and `principalName` may have been chosen
 * by a client, so quote them in log lines, for instance by `JSON.stringify()`.
 */
export class SecurityEvent implements SecurityFacts {
  /** What happened. */
  readonly kind: SecurityEventKind;
  /** When it happened last: epoch milliseconds by the clock of this process. */
  readonly at: number;
  /**
   * How many others of the same kind, address, user and limit this event stands for: those since the event before it. About
   * one a second of them is delivered.
   */
  readonly suppressed: number;
  /** In upper case, such as `POST`; undefined where there was no request. */
  readonly method: string | undefined;
  /** The path as the client sent it, without the query; cut after 256 characters. */
  readonly path: string | undefined;
  /**
   * The address of the client, as the platform gives it: behind a proxy, that of the proxy unless the platform trusts it;
   * cut after 64 characters. Undefined where it is not known, and where the event stands for several clients.
   */
  readonly remoteAddress: string | undefined;
  /**
   * The id of the session, or that of the token which opened none. With the option `sessionIds: 'plain'` it is a
   * fingerprint, as in log lines.
   */
  readonly sessionId: string | undefined;
  /** The name of the signed-in user whose session it is. */
  readonly principalName: string | undefined;
  /** Why a token or request was refused, where a kind has several reasons. */
  readonly reason: string | undefined;
  /** The name of the option whose limit was reached. */
  readonly limit: string | undefined;

  /** Use it in tests of your handlers. `at` is now unless it is given; `suppressed` is 0. */
  constructor(
    kind: SecurityEventKind,
    facts: SecurityFacts & { readonly at?: number | undefined; readonly suppressed?: number | undefined } = {},
  ) {
    this.kind = kind;
    this.at = facts.at ?? Date.now();
    this.suppressed = facts.suppressed ?? 0;
    this.method = facts.method;
    this.path = facts.path;
    this.remoteAddress = facts.remoteAddress;
    this.sessionId = facts.sessionId;
    this.principalName = facts.principalName;
    this.reason = facts.reason;
    this.limit = facts.limit;
  }
}
