import type { Type } from '@nestjs/common';
import type { Duration } from '../option-reading/duration.js';
import { logger } from '../logging/session.logger.js';
import { OptionReader } from '../option-reading/option.reader.js';
import type { HttpRequestLike } from '../option-reading/http-request-like.js';
import type { SecurityLevel } from '../option-reading/security-level.js';
import { type DeviceOptions, readDeviceOptions, type ResolvedDeviceOptions } from './device.options.js';
import { type MaxSessionsOptions, readMaxSessions } from './max-sessions.options.js';
import { type BoundsOptions, readBounds } from './bounds.options.js';
import { readIndexes } from './indexes.options.js';
import { readIds } from './id.options.js';
import { strictResolverProblems } from './strict-security.js';
import { inSeconds, readTimeouts, TOUCHES_PER_TIMEOUT } from './timeout.options.js';
import { type CsrfOptions, readCsrfOptions, type ResolvedCsrfOptions } from './csrf.options.js';
import { type CookieOptions, readCookieOptions, type ResolvedCookieOptions } from '../resolvers/cookie.options.js';
import { AliasedSessionIdResolver } from '../resolvers/aliased-session-id.resolver.js';
import { CookieSessionIdResolver } from '../resolvers/cookie-session-id.resolver.js';
import { requestFactsOf } from '../resolvers/request-facts.js';
import { SessionIdResolver } from '../resolvers/session-id.resolver.js';
import { SecurityEvents } from '../security-events/security.events.js';
import type { SessionIdForm, SessionIds, SessionTokenGenerator } from '../session/session-token.js';
import type { MaxSessions } from '../session/session-limit.js';
import type { SessionIndex, SessionIndexes } from '../session/session-indexes.js';
import type { SessionBounds } from '../session/session-bounds.js';
import { UNDECODABLE_POLICIES, type UndecodablePolicy } from '../session/stored-attributes.js';

/** Options of `SessionModule.forRoot()`. */
export interface SessionModuleOptions extends BoundsOptions {
  /**
   * The idle timeout: the time without access after which a session expires; whole seconds, or `'never'`.
   * @default '30m'
   */
  timeout?: Duration;
  /**
   * The idle timeout until somebody signs in: that of a session without a principal. Shorter or longer than `timeout`.
   * @default timeout; with `security: 'strict'` at most '30m'
   */
  anonymousTimeout?: Duration;
  /**
   * The time since its creation after which a session expires, however much it is used; whole seconds, or `'never'`.
   * @default 'never'; '12h' with `security: 'strict'`
   */
  absoluteTimeout?: Duration;
  /**
   * How often reads renew the idle timeout at most; `0`: at every request. A session expires up to this
   * much earlier than `timeout` after its last access. For a session with a shorter idle timeout of its own, it is at
   * most a thirtieth of that. @default timeout / 30, at most '1m'
   */
  touchInterval?: Duration;
  /** How the session cookie is set; not together with `sessionIdResolver`. @default see `CookieOptions` */
  cookie?: CookieOptions;
  /**
   * Carries the token instead of the cookie that `cookie` describes: a resolver, or a class of one, which is
   * instantiated as a provider of `SessionModule`. @default new CookieSessionIdResolver(cookie)
   */
  sessionIdResolver?: SessionIdResolver | Type<SessionIdResolver>;
  /**
   * What the store, events and `session.id` have as the session id: the SHA-256 of the token, which opens nothing; or,
   * like Spring Session, the token itself (`'plain'`), with which anyone who can read the store can take over sessions.
   * @default 'hashed'
   */
  sessionIds?: SessionIdForm;
  /** Generates the tokens. @default new RandomSessionTokenGenerator() */
  sessionTokenGenerator?: SessionTokenGenerator;
  /**
   * The names of attributes that are bound to the visitor: no sign-in keeps them, because whoever planted the session of
   * before could know or choose their values. Names that begin with `nest-session.visitor.` are always bound to the
   * visitor, CSRF tokens among them. @default none
   */
  visitorAttributes?: readonly string[];
  /**
   * `'strict'` is for production: other defaults, such as a cookie for https only and an absolute timeout, and an error at
   * start for options that OWASP ASVS 5.0 forbids; docs/security.md has the list. A request that presents live sessions
   * of two principals gets a `ConflictException`, 409, where it uses the session, because somebody may have planted a
   * cookie. With `'standard'` the first counts, with a security event, or a warning once. @default 'standard'
   */
  security?: SecurityLevel;
  /**
   * How many live sessions a principal may have, such as `{ perPrincipal: 5 }`. The store decides it in the step that
   * signs in: there are never more. Sessions from before you set this option, or a lower number, count, and end as soon
   * as their principal signs in. @default no limit
   */
  maxSessions?: MaxSessionsOptions;
  /**
   * How long `session.updateAttribute()` waits at most while other requests update the same attribute, and repeats its
   * update. Then it throws a `SessionConflictError`, 409. @default '5s'
   */
  updateTimeout?: Duration;
  /**
   * What happens to a session with a value that the serializer cannot decode. One log line names the attribute.
   * - `'throw'`: reading the attribute throws a `SessionAttributeError`, which is answered 500 unless you catch it.
   * - `'drop-attribute'`: reading the attribute gives undefined; from then on `attributeNames` does not name it. The
   *   store keeps the value until you set or remove the attribute.
   * - `'drop-session'`: loading the session ends it, as deleted, and the request gets a new one. Each load decodes all
   *   attributes of the session. A value that another request writes later is noticed by the next load.
   *
   * The sessions of events always drop the attribute.
   * @default 'drop-attribute'
   */
  undecodable?: UndecodablePolicy;
  /**
   * Indexes by which `IndexedSessionRepository.findByIndex()` finds sessions, beside that of principals: by their names,
   * functions that give the value under which an index lists a session, such as
   * `{ tenant: (session) => session.getAttribute('user')?.tenant }`. Each reads one attribute, the same one for every
   * session. Its value takes effect with the save of that attribute. @default none
   */
  indexes?: Readonly<Record<string, SessionIndex>>;
  /** What `CsrfGuard` looks at; without effect where you do not use it. @default see `CsrfOptions` */
  csrf?: CsrfOptions;
  /** Lets a browser have several sessions, each with its own cookie: see `BrowserSessions`. @default false */
  multipleSessions?: boolean;
  /**
   * Records with each session what client created it or signed in to it last, which `Sessions.ofPrincipal()` shows as
   * `device`: a shortened address and a shortened User-Agent header. Personal data in many countries. @default false
   */
  devices?: boolean | DeviceOptions;
  /**
   * Makes `SessionContext` and `BrowserSessions` work although no provider, controller or middleware class of the
   * application injects them, for instance when you get them from `ModuleRef`. Knowing the current request costs every
   * request. @default false: they work where something injects one of them
   */
  context?: boolean;
  /** Returns true for requests without a session, such as those for static files. They never call the store. */
  exclude?: (request: HttpRequestLike) => boolean;
  /** Returns true for requests that do not renew the idle timeout, such as polling; see also `@KeepSessionIdle()`. */
  keepIdle?: (request: HttpRequestLike) => boolean;
  /**
   * Decides whether a request may store a new session: false makes its save throw a `SessionCreationRefusedError`, 429.
   * Called once, right before the session would be stored, and never for sessions that are created outside of requests.
   * What it throws is the error of the save. `address`: of the client, as the platform knows it, trusted proxies taken
   * into account; undefined once the client has disconnected. @default every request may
   */
  mayCreate?: (request: HttpRequestLike, address: string | undefined) => boolean | Promise<boolean>;
}

/** The options of `SessionModule`, checked and with all defaults; injected by `SESSION_OPTIONS`. */
export interface ResolvedSessionOptions extends SessionBounds {
  /** Seconds; -1: none. */
  readonly timeout: number;
  /** Seconds; -1: none. Of a session in which nobody is signed in. */
  readonly anonymousTimeout: number;
  /** Seconds; -1: none. */
  readonly absoluteTimeout: number;
  /** Milliseconds. */
  readonly touchInterval: number;
  /** Without effect when a `sessionIdResolver` was given. */
  readonly cookie: ResolvedCookieOptions;
  /** A resolver, or the class of one that is still to be instantiated. */
  readonly sessionIdResolver: SessionIdResolver | Type<SessionIdResolver>;
  /** Draws tokens and derives the ids that the store knows. */
  readonly ids: SessionIds;
  /** The attributes that no sign-in keeps. */
  readonly visitorAttributes: readonly string[];
  /** What is refused. */
  readonly security: SecurityLevel;
  /** How many live sessions a principal may have; undefined: any number. */
  readonly maxSessions: MaxSessions | undefined;
  /** Milliseconds. */
  readonly updateTimeout: number;
  /** What happens to a session with a value that cannot be decoded. */
  readonly undecodable: UndecodablePolicy;
  /** Under what sessions are listed. */
  readonly indexes: SessionIndexes;
  /** What `CsrfGuard` looks at. */
  readonly csrf: ResolvedCsrfOptions;
  /** What a session records of its client; undefined: nothing. */
  readonly devices: ResolvedDeviceOptions | undefined;
  /** Whether the current request is known even when nothing injects the services that know it. */
  readonly context: boolean;
  /** True for a request that has no session; undefined: every request has one. */
  readonly exclude: ((request: HttpRequestLike) => boolean) | undefined;
  /** True for a request that does not renew the session; undefined: every request renews it. */
  readonly keepIdle: ((request: HttpRequestLike) => boolean) | undefined;
  /** False for a request that may store no new session; undefined: every request may. */
  readonly mayCreate: SessionModuleOptions['mayCreate'];
  /** Where to report what an attacker may have done; for `@OnSecurityEvent`. */
  readonly securityEvents: SecurityEvents;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** Reads and checks the options of `SessionModule`. @throws InvalidSessionOptionsError naming all problems at once */
export function resolveSessionOptions(options: SessionModuleOptions = {}): ResolvedSessionOptions {
  const reader = new OptionReader('SessionModule', options);
  const security = reader.oneOf('security', ['standard', 'strict'], 'standard');
  const { timeout, anonymousTimeout, absoluteTimeout } = readTimeouts(reader, security);
  const touchInterval = reader.duration(
    'touchInterval',
    `${Math.min(MINUTE, Math.floor(timeout / TOUCHES_PER_TIMEOUT))}ms`,
  );
  if (touchInterval >= timeout && timeout > 0) {
    reader.problem('Option `touchInterval` must be shorter than `timeout`: sessions in use would expire.');
  }
  const cookie = readCookieOptions(reader.section('cookie'), security);
  if (cookie.maxAge !== undefined && cookie.maxAge * SECOND <= touchInterval) {
    reader.problem(
      'Option `cookie.maxAge` must be longer than `touchInterval`: the cookies of sessions in use would end.',
    );
  }
  if (cookie.rememberMe !== undefined && timeout !== Infinity && cookie.rememberMe * SECOND <= timeout) {
    reader.problem('Option `cookie.rememberMe` must be longer than `timeout`: otherwise it does nothing.');
  }
  const sessionIdResolver = reader.value('sessionIdResolver', isResolver, 'a SessionIdResolver, or the class of one');
  if (sessionIdResolver !== undefined && options.cookie !== undefined) {
    reader.problem(
      'Option `cookie` has no effect beside `sessionIdResolver`: remove it, or give it to new CookieSessionIdResolver({ ... }).',
    );
  }
  const multipleSessions = reader.boolean('multipleSessions', false);
  if (sessionIdResolver !== undefined && multipleSessions) {
    reader.problem('Option `multipleSessions` needs cookies of its own: remove it, or `sessionIdResolver`.');
  }
  if (security === 'strict' && sessionIdResolver instanceof SessionIdResolver) {
    for (const problem of strictResolverProblems(sessionIdResolver)) reader.problem(problem);
  }
  const ids = readIds(reader, security);
  const visitorAttributes = reader.value('visitorAttributes', isListOfNames, 'a list of names of attributes') ?? [];
  const maxSessions = readMaxSessions(reader);
  const updateTimeout = reader.duration('updateTimeout', '5s', { atLeast: 1, atMost: 60 * MINUTE });
  const bounds = readBounds(reader);
  const undecodable = reader.oneOf('undecodable', UNDECODABLE_POLICIES, 'drop-attribute');
  const indexes = readIndexes(reader);
  const csrf = readCsrfOptions(reader.section('csrf'));
  const devices = readDeviceOptions(reader);
  const context = reader.boolean('context', false);
  const exclude = reader.value('exclude', isPredicate, 'a function that takes the request');
  const keepIdle = reader.value('keepIdle', isPredicate, 'a function that takes the request');
  const mayCreate = reader.value('mayCreate', isCreationRule, 'a function that takes the request');
  reader.finish();
  if (cookie.rememberMe !== undefined && cookie.rememberMe * SECOND > absoluteTimeout) {
    logger.warn(
      `Option \`cookie.rememberMe\` outlives \`absoluteTimeout\`: remembered sessions end after ${absoluteTimeout / SECOND}s ` +
        'all the same. Set a longer `absoluteTimeout`, or set `session.absoluteTimeout` after `session.signIn()`',
    );
  }
  return Object.freeze({
    timeout: inSeconds(timeout),
    anonymousTimeout: inSeconds(anonymousTimeout),
    absoluteTimeout: inSeconds(absoluteTimeout),
    touchInterval,
    cookie,
    sessionIdResolver:
      sessionIdResolver ??
      new (multipleSessions ? AliasedSessionIdResolver : CookieSessionIdResolver)(options.cookie, security),
    ids,
    visitorAttributes: Object.freeze([...visitorAttributes]),
    security,
    maxSessions,
    updateTimeout,
    ...bounds,
    undecodable,
    indexes,
    csrf,
    devices,
    context,
    exclude,
    keepIdle,
    mayCreate,
    securityEvents: new SecurityEvents({ shownId: (id) => ids.shown(id), factsOf: requestFactsOf }),
  });
}

function isResolver(value: unknown): value is SessionIdResolver | Type<SessionIdResolver> {
  const prototype: unknown = typeof value === 'function' ? value.prototype : value;
  return prototype instanceof SessionIdResolver;
}

function isListOfNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string' && each !== '');
}

function isPredicate(value: unknown): value is (request: HttpRequestLike) => boolean {
  return typeof value === 'function';
}

function isCreationRule(value: unknown): value is NonNullable<SessionModuleOptions['mayCreate']> {
  return typeof value === 'function';
}
