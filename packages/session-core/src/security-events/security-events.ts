import type { IncomingMessage } from 'node:http';
import { holderOf } from './network-of.js';

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
 * - `'missing-proof'`: a request has the cookie of a session that is bound to a browser, and no proof that it comes
 *   from there: see the option `deviceBound`. So does a thief, and so do a few requests of the user. `reason` says what
 *   is known: what the browser says (`unreachable`, `server_error`, `quota_exceeded`), another site that caused the
 *   request (`cross-site`, `same-site`), a proof of another session (`forged`), no binding where one is needed
 *   (`device-not-bound`), a binding that cannot be read (`unreadable`), or `missing`;
 * - `'refused-proof'`: somebody tried to bind a session, or to prove that it is theirs, in vain. `reason` says why:
 *   `unknown-handle`, `second-key`, `malformed`, `foreign-challenge` or `wrong-key`;
 * - `'reused-token'`: a token came although its successor is in use for a minute or longer: two clients have it, or a
 *   browser was restored with old cookies. See the option `rotateEvery`. Nothing says which of them is the user;
 * - `'provider-logout'`: an identity provider has ended sessions, by @nest-session/provider-logout. `by` is the
 *   provider, `action` what it has told (`back-channel`, or the name of an event), `sessions` how many have ended;
 * - `'refused-provider-token'`: somebody sent a logout or an event that is refused. `by` is the provider that it names,
 *   if it is a configured one, and `reason` says why: `malformed`, `too-large`, `foreign-type`, `unknown-issuer`,
 *   `not-accepted`, `authorization`, `audience`, `signature`, `unknown-key`, `encrypted`, `expired`, `claims`,
 *   `confused` (a token for something else) or `mixed` (a `sid` of another user);
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
  | 'missing-proof'
  | 'refused-proof'
  | 'reused-token'
  | 'provider-logout'
  | 'refused-provider-token'
  | 'admin-action';

/**
 * Something that an attacker may have done, as this process has seen it. It contains no token, no cookie and no value
 * of an attribute. A client may have chosen `path`, `remoteAddress` and `principalName`: quote them in log lines.
 */
export class SecurityEvent {
  /** What happened. */
  readonly kind: SecurityEventKind;
  /** When it last happened, in epoch milliseconds by the clock of this process. */
  readonly at: number;
  /** How many other events of the same kind, address, user and limit it stands for: one per second is delivered. */
  readonly suppressed: number;
  /** The method in upper case, such as `POST`; undefined if there was no request. */
  readonly method: string | undefined;
  /** The path as the client sent it, without the query. It is cut after 256 characters. */
  readonly path: string | undefined;
  /**
   * The address of the client, as the platform reports it: that of a proxy which the platform does not trust. It is cut
   * after 64 characters. Undefined if it is not known, or if the event stands for several clients.
   */
  readonly remoteAddress: string | undefined;
  /** The id of the session, or that of the token that opened none; with `sessionIds: 'plain'`, a fingerprint. */
  readonly sessionId: string | undefined;
  /** The name of the signed-in user of the session. */
  readonly principalName: string | undefined;
  /** Why a token or request was refused, if the kind has several reasons. */
  readonly reason: string | undefined;
  /** The name of the option whose limit was reached, or of a limit that no option sets. */
  readonly limit: string | undefined;
  /**
   * What an admin did: `end-session`, `end-sessions`, `replay`, `replay-all`, `discard`, `discard-all`, `remove-group`
   * or `cancel-deadline`. Or what an identity provider has told: `back-channel`, or the name of an event.
   */
  readonly action: string | undefined;
  /**
   * The name of the admin: the option `by` of `SessionAdminModule` or, without it, the user of their session. Or the
   * issuer of an identity provider.
   */
  readonly by: string | undefined;
  /** A group, a dead letter, or the name and id of a deadline, if the action was for no session and no user. */
  readonly target: string | undefined;
  /** How many sessions an identity provider has ended. */
  readonly sessions: number | undefined;

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
    this.sessions = facts.sessions;
  }
}

/** What is known of a security event. Each fact is optional. */
export type SecurityFacts = Partial<Omit<SecurityEvent, 'kind' | 'at' | 'suppressed'>>;

/** The facts about its request. */
export type RequestFacts = Pick<SecurityFacts, 'method' | 'path' | 'remoteAddress'>;

/** What the reporting code knows about an event. */
export interface SecurityReport extends Omit<SecurityFacts, keyof RequestFacts | 'sessionId'> {
  readonly request?: IncomingMessage | undefined;
  readonly sessionId?: string | undefined;
}

export interface SecurityEventListener {
  listensTo(kind: SecurityEventKind): boolean;
  /** Whether nobody needs a line in the log about such events. */
  replacesLog(kind: SecurityEventKind): boolean;
  hear(event: SecurityEvent): void;
}

/** Turns the parts of a report into the facts of an event. */
export interface SecurityReportReader {
  /** Returns the id as log lines show it. */
  shownId(id: string): string;
  factsOf(request: IncomingMessage): RequestFacts;
}

/** The security events of one application. Without a listener, a report costs nothing. */
export class SecurityEvents {
  readonly #limiter = new SecurityEventLimiter((event) => this.#listener?.hear(event));
  readonly #reader: SecurityReportReader;
  #listener: SecurityEventListener | undefined;

  constructor(reader: SecurityReportReader) {
    this.#reader = reader;
  }

  /**
   * Never throws. False when no handler wants such events instead of a line in the log: the caller then logs it, once.
   */
  report(kind: SecurityEventKind, { request, sessionId, ...facts }: SecurityReport = {}): boolean {
    const listener = this.#listener;
    if (!listener?.listensTo(kind)) return false;
    const { shownId, factsOf } = this.#reader;
    const all = {
      ...(request && factsOf(request)),
      ...facts,
      sessionId: sessionId === undefined ? undefined : shownId(sessionId),
    };
    // Each action of an admin or a provider is one of its own: none stands for another.
    if (kind === 'admin-action' || kind === 'provider-logout') listener.hear(new SecurityEvent(kind, all));
    else this.#limiter.add(kind, all);
    return listener.replacesLog(kind);
  }

  /** Delivers the waiting events, and then sends all later events to `listener`. Undefined stops the delivery. */
  listen(listener: SecurityEventListener | undefined): void {
    this.#limiter.flush();
    this.#listener = listener;
  }
}

const WINDOW = 1000;
// The number of sources per kind. Further clients share one entry. A handler that takes its time can still hear of all.
const MOST_SOURCES = 500;
const OTHERS = 'others';

interface Source {
  latest: SecurityFacts & { readonly at: number };
  /** How many of its events were not delivered yet. */
  waiting: number;
}

/**
 * Delivers the first event of a client, and then about one per second that stands for all others: an attack costs
 * handlers little, and they can still count. For each kind, it tells 500 clients apart at a time.
 */
export class SecurityEventLimiter {
  readonly #sources = new Map<SecurityEventKind, Map<string, Source>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly deliver: (event: SecurityEvent) => void) {}

  add(kind: SecurityEventKind, facts: SecurityFacts): void {
    const sources = this.#sources.get(kind) ?? new Map<string, Source>();
    this.#sources.set(kind, sources);
    const own = [facts.limit, holderOf(facts.remoteAddress), facts.principalName, facts.by].join('\n');
    const isOne = sources.has(own) || sources.size < MOST_SOURCES;
    const key = isOne ? own : OTHERS;
    const latest = { ...(isOne ? facts : anonymous(facts)), at: Date.now() };
    const source = sources.get(key);
    if (source) {
      source.latest = latest;
      source.waiting++;
      return;
    }
    sources.set(key, { latest, waiting: 0 });
    this.#wait();
    this.deliver(new SecurityEvent(kind, latest));
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const [kind, sources] of this.#sources) {
      // Otherwise those who came first could hide all others for as long as they like.
      const isFull = sources.has(OTHERS);
      for (const [key, source] of sources) {
        if (source.waiting === 0 || isFull) sources.delete(key);
        if (source.waiting > 0)
          this.deliver(new SecurityEvent(kind, { ...source.latest, suppressed: source.waiting - 1 }));
        source.waiting = 0;
      }
      if (sources.size === 0) this.#sources.delete(kind);
    }
  }

  #wait(): void {
    this.#timer ??= setTimeout(() => {
      this.flush();
      if (this.#sources.size > 0) this.#wait();
    }, WINDOW).unref();
  }
}

/** Leaves out who it was: an event that stands for several clients must not blame one of them. */
function anonymous({ method, path, reason, limit }: SecurityFacts): SecurityFacts {
  return { method, path, reason, limit };
}
