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
   * The name under which the cookie is sent and read; cookies of other names are not read.
   * @default '__Host-SESSION' where `secure` is true, `path` is `'/'` and neither `domain`, `domains` nor `attributes` is
   * set, so that no other host can set the cookie; otherwise 'SESSION'. With `security: 'strict'` it is
   * '__Secure-SESSION' where `domain` or `domains` is set, and otherwise '__Host-SESSION'
   */
  name?: string;
  /**
   * Replaces `domain` where the application has several: the cookie has the longest of these domains that the host of a
   * request is, or is a subdomain of. On other hosts, it has no domain. Such as `['example.com', 'example.org']`.
   */
  domains?: readonly string[];
  /** Writes and reads the token as base64, as Spring Session does with its ids. @default false */
  base64?: boolean;
  /**
   * Secrets of at least 32 bytes. Values are signed with the first and accepted if any of them signed. A value without
   * a valid signature is ignored, without a look-up. Unset: values are not signed; they cannot be guessed either way.
   */
  signingKeys?: readonly string[];
  /**
   * How long the browser keeps the cookie after it was last sent: whole seconds, at most `'400d'`. The cookie is sent
   * again when the session is touched. Unset: until the browser is closed.
   */
  maxAge?: Duration;
  /** The same for sessions that you passed to `RememberMe`. @default maxAge */
  rememberMe?: Duration;
  /**
   * Returns other attributes for some requests, such as those of one tenant; undefined for the configured ones. Where it
   * throws, or returns attributes that are refused at start or a promise, no cookie is set.
   */
  attributes?: (request: HttpRequestLike) => CookieAttributes | undefined;
}

/** The attributes of the cookie that can differ from request to request. */
export interface CookieAttributes {
  /** @default '/' */
  path?: string;
  /** Unset: the browser sends the cookie only to the host that set it. */
  domain?: string;
  /** Hides the cookie from scripts. @default true */
  httpOnly?: boolean;
  /**
   * `'auto'`: Secure when the request came over https, trusted proxies included.
   * @default 'auto'; true with `security: 'strict'`, which takes nothing else
   */
  secure?: boolean | 'auto';
  /** `false` leaves the attribute out, so that the browser decides. @default 'lax' */
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
  /** What is refused, also of the attributes of a request. */
  readonly security: SecurityLevel;
  /** Whether the token is written and read as base64. */
  readonly base64: boolean;
  /** The first signs, all of them verify; empty: values are not signed. */
  readonly signingKeys: readonly KeyObject[];
  /** Seconds. */
  readonly maxAge: number | undefined;
  /** Seconds; undefined: as `maxAge`. */
  readonly rememberMe: number | undefined;
  /** Gives the attributes that differ for a request. */
  readonly attributes: ((request: HttpRequestLike) => CookieAttributes | undefined) | undefined;
}

const SECOND = 1000;
/** Milliseconds. RFC 6265bis 5.5: browsers shorten a longer lifetime. */
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

/** Reads the `cookie` section. Refuses what browsers would silently refuse later. */
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
 * The attributes of a request for which `attributes` returned others.
 * @throws InvalidSessionOptionsError for attributes that would be refused at start-up, too
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
 * The name of a cookie that has none of its own. What `attributes` returns is not known at start, and a name with the
 * prefix would refuse some of it.
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

/** The longest first: of two that contain a host, it counts. */
function readDomains(reader: OptionReader): readonly string[] | undefined {
  const domains = reader.value('domains', isListOfStrings, "a list of domains, such as ['example.com']");
  for (const [position, domain] of (domains ?? []).entries()) {
    const problem = domainProblem(domain);
    if (problem !== undefined) reader.problem(`Option \`cookie.domains[${position}]\` ${problem}.`);
  }
  return domains?.toSorted((one, other) => other.length - one.length);
}

/** The keys as objects that do not print their secrets. */
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
