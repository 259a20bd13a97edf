import { isAsyncFunction } from 'node:util/types';
import type { Type } from '@nestjs/common';
import { bindingIn, DEVICE_INDEX } from '../device/device-binding.js';
import { type DeviceBoundOptions, readDeviceBoundOptions } from '../device/device-bound.options.js';
import type { Duration } from '../option-reading/duration.js';
import { isBooleanOrObject, isRecord, OptionReader } from '../option-reading/option.reader.js';
import {
  type SecurityLevel,
  strictAbsoluteTimeout,
  strictIdProblems,
  strictResolverProblems,
} from '../option-reading/strict-security.js';
import { toOrigin } from '../option-reading/to-origin.js';
import { AliasedSessionIdResolver } from '../resolvers/aliased-session-id.resolver.js';
import { CookieSessionIdResolver } from '../resolvers/cookie-session-id.resolver.js';
import { type CookieOptions, readCookieOptions } from '../resolvers/cookie.options.js';
import { requestFactsOf } from '../resolvers/proxied-request.js';
import { SessionIdResolver } from '../resolvers/session-id.resolver.js';
import { SecurityEvents } from '../security-events/security-events.js';
import { DEVICE_ATTRIBUTE } from '../session/attribute-names.js';
import type { AttributeSerializer } from '../session/attribute.serializer.js';
import { ApplicationSerializer } from '../session/json-attribute.serializer.js';
import type { SessionBounds } from '../session/session-bounds.js';
import { indexProblem, type SessionIndex, SessionIndexes } from '../session/session-indexes.js';
import type { MaxSessions } from '../session/session-state.js';
import {
  RandomSessionTokenGenerator,
  type SessionIdForm,
  SessionIds,
  SessionTokenGenerator,
} from '../session/session-token.js';
import { inSeconds, lifetimeProblems, readTimeouts, warnOfShortSessions } from './timeout.options.js';

/** Options of `SessionModule.forRoot()`. */
export interface SessionModuleOptions extends BoundsOptions {
  /** The idle timeout: the time without access until a session expires; whole seconds, or `'never'`. @default '30m' */
  timeout?: Duration;
  /** The idle timeout until somebody signs in. @default timeout; with `security: 'strict'` at most '10m' */
  anonymousTimeout?: Duration;
  /** The time until a session expires that is in use. @default 'never'; '12h' with `security: 'strict'` */
  absoluteTimeout?: Duration;
  /**
   * How often requests renew the idle timeout at most; `0`: at every request. A session expires up to this much early,
   * but at most by a thirtieth of its own idle timeout. @default timeout / 30, at most '1m'
   */
  touchInterval?: Duration;
  /** How the session cookie is set; not together with `sessionIdResolver`. @default see `CookieOptions` */
  cookie?: CookieOptions;
  /**
   * Carries the token instead of the cookie that `cookie` describes: a resolver, or the class of one, which becomes a
   * provider of `SessionModule`. @default new CookieSessionIdResolver(cookie)
   */
  sessionIdResolver?: SessionIdResolver | Type<SessionIdResolver>;
  /**
   * The session id of the store and of events: the SHA-256 of the token, which opens nothing; or, like Spring Session,
   * the token itself (`'plain'`): whoever reads the store can take over sessions. @default 'hashed'
   */
  sessionIds?: SessionIdForm;
  /** Generates the tokens. @default new RandomSessionTokenGenerator() */
  sessionTokenGenerator?: SessionTokenGenerator;
  /**
   * Attributes that no sign-in keeps, because whoever planted the session could know or choose their values. So are all
   * whose names begin with `nest-session.visitor.`. @default none
   */
  visitorAttributes?: readonly string[];
  /**
   * `'strict'` is for production: other defaults, such as a cookie for https only and an absolute timeout, and an error
   * at start for options that OWASP ASVS 5.0 forbids: see the page "Security" of the documentation. A request with live
   * sessions of two principals gets a `ConflictException`, 409, where it uses the session: somebody may have planted a
   * cookie. With `'standard'` the first counts, with a security event, or a warning once. @default 'standard'
   */
  security?: SecurityLevel;
  /**
   * How many live sessions a principal may have, such as `{ perPrincipal: 5 }`: never more. Those from before you set
   * it, or a lower number, end as soon as their principal signs in. @default no limit
   */
  maxSessions?: MaxSessionsOptions;
  /**
   * Indexes for `IndexedSessionRepository.findByIndex()`, beside that of principals: by name, functions that give the
   * value under which a session is listed, such as `{ tenant: (session) => session.getAttribute('tenant') }`. Each
   * reads one attribute, the same for every session, and takes effect with the save of it. @default none
   */
  indexes?: Readonly<Record<string, SessionIndex>>;
  /** What `CsrfGuard` looks at; without effect where you do not use it. @default see `CsrfOptions` */
  csrf?: CsrfOptions;
  /** Lets a browser have several sessions, each with its own cookie: see `BrowserSessions`. @default false */
  multipleSessions?: boolean;
  /**
   * Records the client that created a session or signed in to it last: a shortened address and User-Agent header.
   * Personal data in many countries. @default false
   */
  devices?: boolean | DeviceOptions;
  /**
   * Binds the session of each signed-in user to the browser, if that can (device-bound session credentials): it proves
   * every few minutes that it has a key that cannot be copied, so that a stolen cookie opens nothing. Needs https,
   * cookies, and a store with indexes. @default false
   */
  deviceBound?: boolean | DeviceBoundOptions;
  /**
   * How often the token of a signed-in user changes, `'1m'` to `'1d'`, in browsers that bind no session. One that comes
   * a minute after its successor is in use is a security event, `reused-token`: two have it. @default never
   */
  rotateEvery?: Duration;
  /** True for requests without a session, such as those for static files. They never call the store. Not async. */
  exclude?: (request: HttpRequestLike) => boolean;
  /**
   * Whether a request may store a new session: false makes its save throw a `SessionCreationRefusedError`, 429. Called
   * once, right before; what it throws is the error of the save. `address`: of the client, by trusted proxies;
   * undefined once it has disconnected. @default every request may
   */
  mayCreate?: (request: HttpRequestLike, address: string | undefined) => boolean | Promise<boolean>;
}

/**
 * A change that would exceed one throws a `SessionBoundError`, 413. What is stored already stays readable, and may be
 * changed as long as it does not grow. With `security: 'strict'`, and none of them set, a session in which nobody is
 * signed in may hold 32 attributes and 16384 bytes.
 */
interface BoundsOptions {
  /** How many attributes a session may have, at most 10000; the library's own do not count. @default 256 */
  maxAttributes?: number;
  /** Bytes that the text of one attribute may take. @default 65536 */
  maxAttributeSize?: number;
  /** Bytes that the names and texts of all attributes may take, but the library's own. @default maxAttributeSize * 4 */
  maxSessionSize?: number;
}

/** How many live sessions a principal may have. */
export interface MaxSessionsOptions {
  /** The number of sessions, from 1 to 1000. */
  perPrincipal: number;
  /**
   * - `'end-oldest'`: the session whose sign-in is the longest ago ends, as deleted, with its event.
   * - `'refuse'`: nothing is saved, and the save throws a `TooManySessionsError`, 409.
   * @default 'end-oldest'
   */
  whenReached?: 'end-oldest' | 'refuse';
}

/** Options of `CsrfGuard`. */
interface CsrfOptions {
  /**
   * Origins other than the application's own whose pages may send requests that change something, such as
   * `'https://admin.example.com'` or `'capacitor://localhost'`. They need the token all the same. @default none
   */
  trustedOrigins?: readonly string[];
}

/** What a session records of the client that creates it or signs in to it. */
interface DeviceOptions {
  /**
   * `'network'`: the beginning of the address, 24 bits of IPv4 and 48 bits of IPv6, the rest 0. `'full'`: all of it.
   * @default 'network'
   */
  address?: 'network' | 'full' | 'none';
  /**
   * Gives the address of the client, for instance out of a header of your proxy. When it throws, there is none, and the
   * log says so once. @default the `ip` of the platform, which knows trusted proxies, else that of the connection
   */
  addressOf?: (request: HttpRequestLike) => string | undefined;
  /** Whether a shortened User-Agent header is recorded. @default true */
  userAgent?: boolean;
}

/** The Node.js request that is passed to options that are functions, on every platform. */
interface HttpRequestLike {
  /** Such as `GET`. */
  readonly method?: string | undefined;
  /** The path and the query as the client sent them, such as `/cart?page=2`. */
  readonly url?: string | undefined;
  /** By their names in lower case. One that came several times may be an array. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** The checked options, of `SESSION_OPTIONS`. Timeouts are seconds, -1: none; `touchInterval` is milliseconds. */
export type ResolvedSessionOptions = ReturnType<typeof resolveSessionOptions>;

export type ResolvedDeviceOptions = NonNullable<ResolvedSessionOptions['devices']>;

/** Reads and checks the options of `SessionModule`. @throws InvalidSessionOptionsError naming all problems at once */
export function resolveSessionOptions(options: SessionModuleOptions = {}) {
  const reader = new OptionReader('SessionModule', options);
  const security = reader.oneOf('security', ['standard', 'strict'], 'standard');
  const timeouts = readTimeouts(reader, security);
  const { timeout, anonymousTimeout, absoluteTimeout, touchInterval } = timeouts;
  const cookie = readCookieOptions(reader.section('cookie'), security);
  for (const problem of lifetimeProblems(cookie, timeouts)) reader.problem(problem);
  const makeResolver = readResolver(reader, options, security);
  const ids = readIds(reader, security);
  const visitorAttributes = Object.freeze([...(reader.value('visitorAttributes', isListOfNames, LIST_OF_NAMES) ?? [])]);
  const maxSessions = readMaxSessions(reader);
  const bounds = readBounds(reader);
  const csrf = readCsrfOptions(reader.section('csrf'));
  const deviceBound = readDeviceBoundOptions(reader, cookie, csrf.trustedOrigins);
  const resolved = {
    timeout: inSeconds(timeout),
    anonymousTimeout: inSeconds(anonymousTimeout),
    absoluteTimeout: inSeconds(absoluteTimeout),
    // The longest that a session may be given later.
    longestAbsoluteTimeout: security === 'strict' ? strictAbsoluteTimeout(cookie.rememberMe) : Infinity,
    touchInterval,
    cookie,
    ids,
    security,
    visitorAttributes,
    maxSessions,
    ...bounds,
    visitorBounds: security === 'strict' ? boundsOfVisitors(options) : undefined,
    indexes: readIndexes(reader, deviceBound !== undefined),
    csrf,
    devices: readDeviceOptions(reader),
    deviceBound,
    rotateEvery: reader.duration('rotateEvery', undefined, { atLeast: 60_000, atMost: 86_400_000 }),
    exclude: reader.value('exclude', isExclusion, EXCLUSION),
    mayCreate: reader.value('mayCreate', isFunction<NonNullable<typeof options.mayCreate>>, REQUEST_RULE),
    // Unless the store has another one.
    serializer: new ApplicationSerializer() as AttributeSerializer,
    securityEvents: new SecurityEvents({ shownId: (id) => ids.shown(id), factsOf: requestFactsOf }),
  };
  reader.finish({ secret: OF_EXPRESS, resave: OF_EXPRESS, saveUninitialized: OF_EXPRESS });
  warnOfShortSessions(cookie, timeouts);
  return Object.freeze({ ...resolved, sessionIdResolver: makeResolver() });
}

const OF_EXPRESS = 'it belongs to ExpressSessionModule.forRoot() of @nest-session/express-session';

const LIST_OF_NAMES = 'a list of names of attributes';

function isListOfNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string' && each !== '');
}

const REQUEST_RULE = 'a function that takes the request';

function isFunction<F extends (...args: never[]) => unknown>(value: unknown): value is F {
  return typeof value === 'function';
}

const EXCLUSION = `${REQUEST_RULE} and returns at once, not an async one`;

/** The promise of an async function would exclude every request. */
function isExclusion(value: unknown): value is (request: HttpRequestLike) => boolean {
  return typeof value === 'function' && !isAsyncFunction(value);
}

/** A resolver, the class of one, or the cookie, of which there may be several; made once all options are right. */
function readResolver(
  reader: OptionReader,
  options: SessionModuleOptions,
  security: SecurityLevel,
): () => SessionIdResolver | Type<SessionIdResolver> {
  const given = reader.value('sessionIdResolver', isResolver, 'a SessionIdResolver, or the class of one');
  const multipleSessions = reader.boolean('multipleSessions', false);
  if (given === undefined) {
    return () => new (multipleSessions ? AliasedSessionIdResolver : CookieSessionIdResolver)(options.cookie, security);
  }
  if (options.cookie !== undefined) reader.problem(COOKIE_WITHOUT_EFFECT);
  if (multipleSessions) {
    reader.problem('Option `multipleSessions` needs cookies of its own: remove it, or `sessionIdResolver`.');
  }
  if (security === 'strict' && given instanceof SessionIdResolver) {
    for (const problem of strictResolverProblems(given)) reader.problem(problem);
  }
  return () => given;
}

const COOKIE_WITHOUT_EFFECT =
  'Option `cookie` has no effect beside `sessionIdResolver`: remove it, or give it to new CookieSessionIdResolver({ ... }).';

function isResolver(value: unknown): value is SessionIdResolver | Type<SessionIdResolver> {
  const prototype: unknown = typeof value === 'function' ? value.prototype : value;
  return prototype instanceof SessionIdResolver;
}

function readIds(reader: OptionReader, security: SecurityLevel): SessionIds {
  const form = reader.oneOf('sessionIds', ['hashed', 'plain'], 'hashed');
  const generator = reader.value('sessionTokenGenerator', isGenerator, 'a SessionTokenGenerator');
  const ids = new SessionIds(generator ?? new RandomSessionTokenGenerator(), form);
  try {
    const drawn = [ids.draw().token.reveal(), ids.draw().token.reveal()] as const;
    if (security === 'strict') for (const problem of strictIdProblems(form, drawn)) reader.problem(problem);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    reader.problem(`Option \`sessionTokenGenerator\` cannot be used: ${reason}.`);
  }
  return ids;
}

function isGenerator(value: unknown): value is SessionTokenGenerator {
  return value instanceof SessionTokenGenerator;
}

// A sign-in that reaches the limit looks at each session of the principal.
const MOST_SESSIONS = 1000;

/** Undefined when there is no limit. */
function readMaxSessions(parent: OptionReader): MaxSessions | undefined {
  if (parent.value('maxSessions', isRecord, 'an object such as { perPrincipal: 5 }') === undefined) return undefined;
  const reader = parent.section('maxSessions');
  const perPrincipal = reader.integer('perPrincipal', 0, { atLeast: 1, atMost: MOST_SESSIONS });
  const whenReached = reader.oneOf('whenReached', ['end-oldest', 'refuse'], 'end-oldest');
  reader.finish();
  return { perPrincipal, whenReached };
}

// Bytes. Names stand in the source of the application, and nobody needs a longer one.
const LONGEST_NAME = 256;
// More would not fit into the arguments of one call, and each costs every load.
const MOST_ATTRIBUTES = 10_000;
// Redis takes no larger value.
const LARGEST = 512 * 1024 * 1024;

function readBounds(reader: OptionReader): SessionBounds {
  const range = { atLeast: 1, atMost: LARGEST };
  const maxAttributes = reader.integer('maxAttributes', 256, { atLeast: 1, atMost: MOST_ATTRIBUTES });
  const maxAttributeSize = reader.integer('maxAttributeSize', 65_536, range);
  const maxSessionSize = reader.integer('maxSessionSize', Math.min(4 * maxAttributeSize, LARGEST), range);
  return { maxAttributes, maxAttributeNameSize: LONGEST_NAME, maxAttributeSize, maxSessionSize };
}

// Bytes. Room for what a visitor has chosen and typed.
const OF_VISITORS = 16_384;

/** What a session without a principal may hold in strict mode, unless the application has set bounds. */
function boundsOfVisitors(options: BoundsOptions): SessionBounds | undefined {
  const { maxAttributes, maxAttributeSize, maxSessionSize } = options;
  if ([maxAttributes, maxAttributeSize, maxSessionSize].some((each) => each !== undefined)) return undefined;
  return {
    maxAttributes: 32,
    maxAttributeNameSize: LONGEST_NAME,
    maxAttributeSize: OF_VISITORS,
    maxSessionSize: OF_VISITORS,
  };
}

/** `isBound`: also the one that finds a session by what its browser calls it. */
function readIndexes(reader: OptionReader, isBound: boolean): SessionIndexes {
  const indexes = reader.value('indexes', isRecordOfFunctions, 'an object of functions, by the names of the indexes');
  const problems = Object.entries(indexes ?? {}).flatMap(([name, index]) => {
    const problem = indexProblem(name, index);
    return problem === undefined ? [] : [`Option \`indexes\`: the index ${JSON.stringify(name)} ${problem}.`];
  });
  for (const problem of problems) reader.problem(problem);
  const all = new SessionIndexes(problems.length > 0 ? {} : indexes);
  if (isBound) all.add({ [DEVICE_INDEX]: nameOfBinding });
  return all;
}

/** Under no name where none is bound. */
const nameOfBinding: SessionIndex = (session) => bindingIn(session.getAttribute(DEVICE_ATTRIBUTE))?.id;

function isRecordOfFunctions(value: unknown): value is Record<string, SessionIndex> {
  return isRecord(value) && Object.values(value).every((each) => typeof each === 'function');
}

function readCsrfOptions(reader: OptionReader): { readonly trustedOrigins: ReadonlySet<string> } {
  const origins = reader.value(
    'trustedOrigins',
    isListOfOrigins,
    "a list of origins, such as 'https://www.example.com', without a slash or a path behind the host",
  );
  reader.finish();
  // As browsers write them.
  return Object.freeze({ trustedOrigins: new Set(origins?.map((each) => toOrigin(each)!)) });
}

function isListOfOrigins(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => toOrigin(each) !== undefined);
}

function readDeviceOptions(parent: OptionReader) {
  const given = parent.value('devices', isBooleanOrObject, 'true or false, or an object');
  if (given === undefined || given === false) return undefined;
  const reader = given === true ? new OptionReader('SessionModule', {}) : parent.section('devices');
  const address = reader.oneOf('address', ['network', 'full', 'none'], 'network');
  const addressOf = reader.value('addressOf', isFunction<NonNullable<DeviceOptions['addressOf']>>, REQUEST_RULE);
  const userAgent = reader.boolean('userAgent', true);
  if (address === 'none' && addressOf) reader.problem(NO_ADDRESS);
  reader.finish();
  return { address, addressOf, userAgent };
}

const NO_ADDRESS = "Option `devices.addressOf` has no effect with `devices.address` 'none': remove one of them.";
