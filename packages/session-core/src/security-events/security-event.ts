/**
 * What happened:
 * - `'unknown-token'`: a request presented a well-formed token that opens no session. Guesses do so, stolen and planted
 *   cookies of ended sessions, and every browser whose session has expired;
 * - `'malformed-token'`: a cookie or header of the configured name holds no token;
 * - `'badly-signed-token'`: a cookie has no signature, or no signature by one of `cookie.signingKeys`. `reason` says
 *   which;
 * - `'rotated-token'`: a request tried to start a session with a token that was replaced less than 60 s ago. It got a
 *   409 response;
 * - `'two-principals'`: a request presented live sessions of two users. `principalName` is the user that counted;
 * - `'refused-origin'`: a page of another origin sent a request that `CsrfGuard` refused, or opened a WebSocket that
 *   got no session;
 * - `'refused-csrf-token'`: `CsrfGuard` refused a request. `reason` says whether the token was missing or invalid;
 * - `'limit-reached'`: a limit was reached. `limit` names the option, or the limit if no option sets it;
 * - `'passport-no-principal'`: a session holds a user of Passport, and has no principal by it, so that nothing ends it
 *   with the user's other sessions. `reason` says why. Once per reason and process;
 * - `'admin-action'`: somebody ended, replayed, discarded, removed or cancelled something with `@nest-session/admin`.
 *   `action` says what, `by` who, and `sessionId`, `principalName` or `target` to what.
 */
export type SecurityEventKind =
  | 'unknown-token'
  | 'malformed-token'
  | 'badly-signed-token'
  | 'rotated-token'
  | 'two-principals'
  | 'refused-origin'
  | 'refused-csrf-token'
  | 'limit-reached'
  | 'passport-no-principal'
  | 'admin-action';

/** The facts about its request that a security event contains. */
export interface RequestFacts {
  /** The method in upper case, such as `POST`. */
  readonly method?: string | undefined;
  /** The path as the client sent it, without the query. It is cut after 256 characters. */
  readonly path?: string | undefined;
  /** The address of the client, as the platform reports it. It is cut after 64 characters. */
  readonly remoteAddress?: string | undefined;
}

/** The facts about a security event. */
export interface SecurityFacts extends RequestFacts {
  /** The id of the session, or the id that belongs to the token that opened no session. */
  readonly sessionId?: string | undefined;
  /** The name of the signed-in user of the session. */
  readonly principalName?: string | undefined;
  /** Why a token or request was refused, if the kind has several reasons. */
  readonly reason?: string | undefined;
  /** The name of the option whose limit was reached, or of a limit that no option sets. */
  readonly limit?: string | undefined;
  /** What an admin did, such as `end-session`. */
  readonly action?: string | undefined;
  /** The name of the admin. */
  readonly by?: string | undefined;
  /** What the action was for, if it was no session and no user. */
  readonly target?: string | undefined;
}

/**
 * Something that an attacker may have done, as this process has seen it. `@OnSecurityEvent` methods receive it. It
 * contains no token, no cookie and no value of an attribute. A client may have chosen `path`, `remoteAddress` and
 * `principalName`, so quote them in log lines, for example with `JSON.stringify()`.
 */
export class SecurityEvent implements SecurityFacts {
  /** What happened. */
  readonly kind: SecurityEventKind;
  /** When it last happened, in epoch milliseconds by the clock of this process. */
  readonly at: number;
  /**
   * How many other events of the same kind, address, user and limit this event stands for. They happened since the
   * previous delivery. About one such event per second is delivered.
   */
  readonly suppressed: number;
  /** The method in upper case, such as `POST`; undefined if there was no request. */
  readonly method: string | undefined;
  /** The path as the client sent it, without the query. It is cut after 256 characters. */
  readonly path: string | undefined;
  /**
   * The address of the client, as the platform reports it. Behind a proxy that the platform does not trust, it is the
   * address of the proxy. It is cut after 64 characters. Undefined if it is not known, or if the event stands for
   * several clients.
   */
  readonly remoteAddress: string | undefined;
  /**
   * The id of the session, or the id that belongs to the token that opened no session. With the option
   * `sessionIds: 'plain'` it is a fingerprint, as in log lines.
   */
  readonly sessionId: string | undefined;
  /** The name of the signed-in user of the session. */
  readonly principalName: string | undefined;
  /** Why a token or request was refused, if the kind has several reasons. */
  readonly reason: string | undefined;
  /** The name of the option whose limit was reached. */
  readonly limit: string | undefined;
  /**
   * What an admin did: `end-session`, `end-sessions`, `replay`, `replay-all`, `discard`, `discard-all`, `remove-group`
   * or `cancel-deadline`.
   */
  readonly action: string | undefined;
  /** The name of the admin: the option `by` of `SessionAdminModule` or, without it, the user of their session. */
  readonly by: string | undefined;
  /**
   * What the action was for, if it was no session and no user: a group, a dead letter, or the name and id of a
   * deadline.
   */
  readonly target: string | undefined;

  /** Use it in tests of your handlers. `at` defaults to now, and `suppressed` to 0. */
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
    this.action = facts.action;
    this.by = facts.by;
    this.target = facts.target;
  }
}
