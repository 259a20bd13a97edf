import { isAsyncFunction } from 'node:util/types';
import type { Type } from '@nestjs/common';
import type { Duration } from '../option-reading/duration.js';
import { OptionReader } from '../option-reading/option.reader.js';
import type { HttpRequestLike } from '../option-reading/http-request-like.js';
import type { SecurityLevel } from '../option-reading/security-level.js';
import { strictAbsoluteTimeout } from '../option-reading/strict-security.js';
import { type DeviceOptions, readDeviceOptions, type ResolvedDeviceOptions } from './device.options.js';
import { type MaxSessionsOptions, readMaxSessions } from './max-sessions.options.js';
import { type BoundsOptions, boundsOfVisitors, readBounds } from './bounds.options.js';
import { readIndexes } from './indexes.options.js';
import { readIds } from './id.options.js';
import { readResolver } from './resolver.options.js';
import { inSeconds, lifetimeProblems, readTimeouts, warnOfShortSessions } from './timeout.options.js';
import { type CsrfOptions, readCsrfOptions, type ResolvedCsrfOptions } from './csrf.options.js';
import { type CookieOptions, readCookieOptions, type ResolvedCookieOptions } from '../resolvers/cookie.options.js';
import { requestFactsOf } from '../resolvers/request-facts.js';
import type { SessionIdResolver } from '../resolvers/session-id.resolver.js';
import { SecurityEvents } from '../security-events/security.events.js';
import { ApplicationSerializer } from '../session/json-attribute.serializer.js';
import type { AttributeSerializer } from '../session/attribute.serializer.js';
import type { SessionIdForm, SessionIds, SessionTokenGenerator } from '../session/session-token.js';
import type { MaxSessions } from '../session/session-state.js';
import type { SessionIndex, SessionIndexes } from '../session/session-indexes.js';
import type { SessionBounds } from '../session/session-bounds.js';

/** Options of `SessionModule.forRoot()`. */
export interface SessionModuleOptions extends BoundsOptions {
  /**
   * The idle timeout: the time without access after which a session expires; whole seconds, or `'never'`.
   * @default '30m'
   */
  timeout?: Duration;
  /**
   * The idle timeout until somebody signs in: that of a session without a principal. Shorter or longer than `timeout`.
   * @default timeout; with `security: 'strict'` at most '10m'
   */
  anonymousTimeout?: Duration;
  /**
   * The time since its creation after which a session expires, however much it is used; whole seconds, or `'never'`.
   * @default 'never'; '12h' with `security: 'strict'`
   */
  absoluteTimeout?: Duration;
  /**
   * How often requests renew the idle timeout at most; `0`: at every request. A session expires up to this
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
   * The names of attributes that are bound to the visitor: no sign-in keeps them, because whoever planted the session
   * of before could know or choose their values. Names that begin with `nest-session.visitor.` are always bound to the
   * visitor, CSRF tokens among them. @default none
   */
  visitorAttributes?: readonly string[];
  /**
   * `'strict'` is for production: other defaults, such as a cookie for https only and an absolute timeout, and an error
   * at start for options that OWASP ASVS 5.0 forbids: see the page "Security" of the documentation. A request
   * that presents live sessions of two principals gets a `ConflictException`, 409, where it uses the session, because
   * somebody may have planted a cookie. With `'standard'` the first counts, with a security event, or a warning once.
   * @default 'standard'
   */
  security?: SecurityLevel;
  /**
   * How many live sessions a principal may have, such as `{ perPrincipal: 5 }`. The store decides it in the step that
   * signs in: there are never more. Sessions from before you set this option, or a lower number, count, and end as soon
   * as their principal signs in. @default no limit
   */
  maxSessions?: MaxSessionsOptions;
  /**
   * Indexes by which `IndexedSessionRepository.findByIndex()` finds sessions, beside that of principals: by their
   * names, functions that give the value under which an index lists a session, such as `{ tenant: (session) =>
   * session.getAttribute('user')?.tenant }`. Each reads one attribute, the same one for every session. Its value takes
   * effect with the save of that attribute. @default none
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
   * Returns true for requests without a session, such as those for static files. They never call the store. It must not
   * be async.
   */
  exclude?: (request: HttpRequestLike) => boolean;
  /**
   * Decides whether a request may store a new session: false makes its save throw a `SessionCreationRefusedError`, 429.
   * Called once, right before the session would be stored, and never for sessions that are created outside of requests.
   * What it throws is the error of the save. `address`: of the client, as the platform knows it, trusted proxies taken
   * into account; undefined once the client has disconnected. @default every request may
   */
  mayCreate?: (request: HttpRequestLike, address: string | undefined) => boolean | Promise<boolean>;
}

const OF_EXPRESS = 'it belongs to ExpressSessionModule.forRoot() of @nest-session/express-session';

/** The options of `SessionModule`, checked and with all defaults; injected by `SESSION_OPTIONS`. */
export interface ResolvedSessionOptions extends SessionBounds {
  /** Seconds; -1: none. */
  readonly timeout: number;
  /** Seconds; -1: none. Of a session in which nobody is signed in. */
  readonly anonymousTimeout: number;
  /** Seconds; -1: none. */
  readonly absoluteTimeout: number;
  /** Seconds: the longest that a session may be given later. */
  readonly longestAbsoluteTimeout: number;
  /** Milliseconds. */
  readonly touchInterval: number;
  /** How much a session without a principal may hold; undefined: as much as any other. */
  readonly visitorBounds: SessionBounds | undefined;
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
  /** Encodes and decodes attributes, unless the store has another serializer. */
  readonly serializer: AttributeSerializer;
  /** Under what sessions are listed. */
  readonly indexes: SessionIndexes;
  /** What `CsrfGuard` looks at. */
  readonly csrf: ResolvedCsrfOptions;
  /** What a session records of its client; undefined: nothing. */
  readonly devices: ResolvedDeviceOptions | undefined;
  /** True for a request that has no session; undefined: every request has one. */
  readonly exclude: ((request: HttpRequestLike) => boolean) | undefined;
  /** False for a request that may store no new session; undefined: every request may. */
  readonly mayCreate: SessionModuleOptions['mayCreate'];
  /** Where to report what an attacker may have done; for `@OnSecurityEvent`. */
  readonly securityEvents: SecurityEvents;
}

/** Reads and checks the options of `SessionModule`. @throws InvalidSessionOptionsError naming all problems at once */
export function resolveSessionOptions(options: SessionModuleOptions = {}): ResolvedSessionOptions {
  const reader = new OptionReader('SessionModule', options);
  const security = reader.oneOf('security', ['standard', 'strict'], 'standard');
  const timeouts = readTimeouts(reader, security);
  const { timeout, anonymousTimeout, absoluteTimeout, touchInterval } = timeouts;
  const cookie = readCookieOptions(reader.section('cookie'), security);
  for (const problem of lifetimeProblems(cookie, timeouts)) reader.problem(problem);
  const makeResolver = readResolver(reader, options, security);
  const ids = readIds(reader, security);
  const others = {
    visitorAttributes: Object.freeze([...(reader.value('visitorAttributes', isListOfNames, LIST_OF_NAMES) ?? [])]),
    maxSessions: readMaxSessions(reader),
    ...readBounds(reader),
    visitorBounds: security === 'strict' ? boundsOfVisitors(options) : undefined,
    indexes: readIndexes(reader),
    csrf: readCsrfOptions(reader.section('csrf')),
    devices: readDeviceOptions(reader),
    exclude: reader.value('exclude', isExclusion, EXCLUSION),
    mayCreate: reader.value('mayCreate', isRequestRule<boolean | Promise<boolean>>, REQUEST_RULE),
  };
  reader.finish({ secret: OF_EXPRESS, resave: OF_EXPRESS, saveUninitialized: OF_EXPRESS });
  warnOfShortSessions(cookie, timeouts);
  return Object.freeze({
    timeout: inSeconds(timeout),
    anonymousTimeout: inSeconds(anonymousTimeout),
    absoluteTimeout: inSeconds(absoluteTimeout),
    longestAbsoluteTimeout: security === 'strict' ? strictAbsoluteTimeout(cookie.rememberMe) : Infinity,
    touchInterval,
    cookie,
    sessionIdResolver: makeResolver(),
    ids,
    security,
    ...others,
    serializer: new ApplicationSerializer(),
    securityEvents: new SecurityEvents({ shownId: (id) => ids.shown(id), factsOf: requestFactsOf }),
  });
}

const LIST_OF_NAMES = 'a list of names of attributes';

function isListOfNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string' && each !== '');
}

const REQUEST_RULE = 'a function that takes the request';

function isRequestRule<T>(value: unknown): value is (request: HttpRequestLike) => T {
  return typeof value === 'function';
}

const EXCLUSION = `${REQUEST_RULE} and returns at once, not an async one`;

/** The promise of an async function would exclude every request. */
function isExclusion(value: unknown): value is (request: HttpRequestLike) => boolean {
  return isRequestRule<boolean>(value) && !isAsyncFunction(value);
}
