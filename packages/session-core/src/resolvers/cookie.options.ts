import { createSecretKey, type KeyObject } from 'node:crypto';
import type { Duration } from '../option-reading/duration.js';
import { OptionReader } from '../option-reading/option.reader.js';
import type { HttpRequestLike } from '../option-reading/http-request-like.js';
import type { SecurityLevel } from '../option-reading/security-level.js';
import {
  type CookiePolicy,
  domainProblem,
  nameProblem,
  pathProblem,
  policyProblems,
  signingKeyProblems,
} from './cookie.validation.js';

/** Options of the session cookie. */
export interface CookieOptions extends CookieAttributes {
  /**
   * The name of the cookie. Cookies of other names are not read.
   * @default '__Host-SESSION' if `secure` is true, `path` is `'/'` and none of `domain`, `domains` and `attributes` is
   * set, so that no other host can set the cookie; otherwise 'SESSION'. With `security: 'strict'` it is
   * '__Secure-SESSION' if `domain` or `domains` is set, and otherwise '__Host-SESSION'
   */
  name?: string;
  /**
   * The domains of an application that has several, such as `['example.com', 'example.org']`. Set it instead of
   * `domain`. The cookie gets the longest domain that equals the host of the request or contains it. On other hosts, it
   * has no domain.
   */
  domains?: readonly string[];
  /** Encodes the token as base64, as Spring Session encodes its ids. @default false */
  base64?: boolean;
  /**
   * Secrets of at least 32 bytes. The first one signs the values, and all of them verify. A value without a valid
   * signature is ignored without a look-up. If unset, values are not signed. They cannot be guessed in either case.
   */
  signingKeys?: readonly string[];
  /**
   * How long the browser keeps the cookie after it was last sent, in whole seconds and at most `'400d'`. The cookie is
   * sent again when the session is touched. If unset, the browser keeps it until it is closed.
   */
  maxAge?: Duration;
  /** How long the browser keeps the cookie of a session that you passed to `RememberMe`. @default maxAge */
  rememberMe?: Duration;
  /**
   * Returns other attributes for some requests, such as the requests of one tenant, or undefined for the configured
   * ones. If it throws, or returns a promise or attributes that would be refused at start, no cookie is set.
   */
  attributes?: (request: HttpRequestLike) => CookieAttributes | undefined;
}

/** The attributes of the cookie that can differ from request to request. */
export interface CookieAttributes {
  /** @default '/' */
  path?: string;
  /** The domain whose hosts get the cookie. If unset, the browser sends it only to the host that set it. */
  domain?: string;
  /** Hides the cookie from scripts. @default true */
  httpOnly?: boolean;
  /**
   * Whether the browser sends the cookie over https only. `'auto'` sets Secure when the request came over https, and
   * takes trusted proxies into account.
   * @default 'auto'; true with `security: 'strict'`, which accepts no other value
   */
  secure?: boolean | 'auto';
  /** Whether requests from other sites carry the cookie. `false` lets the browser decide. @default 'lax' */
  sameSite?: 'lax' | 'strict' | 'none' | false;
  /** Gives every site that embeds the application a cookie of its own. @default false */
  partitioned?: boolean;
}

/** The attributes of the cookie of one request. */
export type ResolvedCookieAttributes = Omit<CookiePolicy, 'name' | 'security' | 'attributes'>;

/** The section `cookie` of the options, checked and with all defaults. */
export interface ResolvedCookieOptions extends ResolvedCookieAttributes {
  /** The name of the cookie. */
  readonly name: string;
  /** The level by which attributes are refused, including the attributes of one request. */
  readonly security: SecurityLevel;
  /** Whether the token is written and read as base64. */
  readonly base64: boolean;
  /** The first one signs, and all of them verify. If empty, values are not signed. */
  readonly signingKeys: readonly KeyObject[];
  /** Seconds. */
  readonly maxAge: number | undefined;
  /** Seconds. If undefined, `maxAge` applies. */
  readonly rememberMe: number | undefined;
  /** Returns the attributes that differ for a request. */
  readonly attributes: ((request: HttpRequestLike) => CookieAttributes | undefined) | undefined;
}

const SECOND = 1000;
/** Milliseconds. Browsers shorten a longer lifetime (RFC 6265bis, 5.5). */
export const LONGEST_COOKIE = 400 * 24 * 60 * 60 * SECOND;
const HOST_NAME = '__Host-SESSION';

const STANDARD = {
  path: '/',
  domain: undefined,
  httpOnly: true,
  secure: 'auto',
  sameSite: 'lax',
  partitioned: false,
} as const satisfies Partial<ResolvedCookieAttributes>;

const DEFAULTS = { standard: STANDARD, strict: { ...STANDARD, secure: true } } as const;

/** Reads the `cookie` section. Refuses at start what browsers would silently drop later. */
export function readCookieOptions(reader: OptionReader, security: SecurityLevel): ResolvedCookieOptions {
  const name = reader.text('name', undefined, nameProblem);
  const unnamed = {
    ...readAttributes(reader, DEFAULTS[security]),
    security,
    maxAge: readMaxAge(reader, 'maxAge'),
    domains: readDomains(reader),
    base64: reader.boolean('base64', false),
    signingKeys: readSigningKeys(reader),
    rememberMe: readMaxAge(reader, 'rememberMe'),
    attributes: reader.value('attributes', isFunction, 'a function that takes the request and returns attributes'),
  };
  const cookie: ResolvedCookieOptions = { name: name ?? defaultName(unnamed), ...unnamed };
  for (const problem of policyProblems(cookie)) reader.problem(problem);
  reader.finish();
  return Object.freeze(cookie);
}

/**
 * Combines the configured attributes with those that `attributes` returned for a request.
 * @throws InvalidSessionOptionsError for attributes that would also be refused at start
 */
export function overrideAttributes(cookie: ResolvedCookieOptions, others: CookieAttributes): ResolvedCookieAttributes {
  const reader = new OptionReader('cookie.attributes', { attributes: others });
  const given = reader.section('attributes');
  const own = readAttributes(given, cookie);
  const domains = others.domain === undefined ? cookie.domains : undefined;
  for (const problem of policyProblems({ ...cookie, ...own, domains })) given.problem(problem);
  given.finish();
  reader.finish();
  return { ...own, domains };
}

/**
 * The default name of the cookie. If `attributes` is set, it has no prefix: the function may later return attributes
 * that browsers refuse for a name with the prefix.
 */
function defaultName(cookie: Omit<ResolvedCookieOptions, 'name'>): string {
  const { secure, path, domain, domains, attributes, security } = cookie;
  if (security === 'strict') return domain === undefined && domains === undefined ? HOST_NAME : '__Secure-SESSION';
  const isOfHost = secure === true && path === '/' && domain === undefined && domains === undefined;
  return isOfHost && !attributes ? HOST_NAME : 'SESSION';
}

function readAttributes(
  reader: OptionReader,
  defaults: Omit<ResolvedCookieAttributes, 'domains'>,
): Omit<ResolvedCookieAttributes, 'domains'> {
  return {
    path: reader.text('path', defaults.path, pathProblem),
    domain: reader.text('domain', defaults.domain, domainProblem),
    httpOnly: reader.boolean('httpOnly', defaults.httpOnly),
    secure: reader.oneOf('secure', [true, false, 'auto'], defaults.secure),
    sameSite: reader.oneOf('sameSite', ['lax', 'strict', 'none', false], defaults.sameSite),
    partitioned: reader.boolean('partitioned', defaults.partitioned),
  };
}

function readMaxAge(reader: OptionReader, name: string): number | undefined {
  const ms = reader.duration(name, undefined, { atLeast: SECOND, atMost: LONGEST_COOKIE, wholeSeconds: true });
  return ms === undefined ? undefined : ms / SECOND;
}

/** Sorts the longest domain first, because it wins when two domains contain a host. */
function readDomains(reader: OptionReader): readonly string[] | undefined {
  const domains = reader.value('domains', isListOfStrings, "a list of domains, such as ['example.com']");
  for (const [position, domain] of (domains ?? []).entries()) {
    const problem = domainProblem(domain);
    if (problem !== undefined) reader.problem(`Option \`cookie.domains[${position}]\` ${problem}.`);
  }
  return domains?.toSorted((one, other) => other.length - one.length);
}

/** Returns the keys as objects that do not print their secrets. */
function readSigningKeys(reader: OptionReader): KeyObject[] {
  const keys = reader.value('signingKeys', isListOfStrings, 'a list of strings') ?? [];
  for (const problem of signingKeyProblems(keys)) reader.problem(problem);
  return keys.filter((key) => key !== '').map((key) => createSecretKey(key, 'utf8'));
}

function isListOfStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === 'string');
}

function isFunction(value: unknown): value is (request: HttpRequestLike) => CookieAttributes | undefined {
  return typeof value === 'function';
}
