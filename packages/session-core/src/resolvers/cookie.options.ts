import { createSecretKey, type KeyObject } from 'node:crypto';
import type { Duration } from '../option-reading/duration.js';
import { OptionReader } from '../option-reading/option.reader.js';
import type { HttpRequestLike } from '../option-reading/http-request-like.js';
import {
  type CookiePolicy,
  domainProblem,
  nameProblem,
  patternProblem,
  pathProblem,
  policyProblems,
  signingKeyProblems,
} from './cookie.validation.js';

/** Options of the session cookie. */
export interface CookieOptions extends CookieAttributes {
  /** @default 'SESSION' */
  name?: string;
  /**
   * Replaces `domain`: a regular expression that must match the whole host of a request, case-insensitively. Its one
   * group is the domain. Where it does not match, the cookie has no domain.
   */
  domainPattern?: RegExp | string;
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
  /** Returns other attributes for some requests, such as those of one tenant; undefined for the configured ones. */
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
  /** `'auto'`: Secure when the request came over https, trusted proxies included. @default 'auto' */
  secure?: boolean | 'auto';
  /** `false` leaves the attribute out, so that the browser decides. @default 'lax' */
  sameSite?: 'lax' | 'strict' | 'none' | false;
  /** Gives every site that embeds the application a cookie of its own. @default false */
  partitioned?: boolean;
}

/** The attributes of the cookie of one request. */
export type ResolvedCookieAttributes = Omit<CookiePolicy, 'name'>;

/** The section `cookie` of the options, checked and with all defaults. */
export interface ResolvedCookieOptions extends ResolvedCookieAttributes {
  /** The name of the cookie. */
  readonly name: string;
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
// RFC 6265bis 5.5: browsers shorten a longer lifetime.
const LONGEST = 400 * 24 * 60 * 60 * SECOND;

/** Reads the `cookie` section. Refuses what browsers would silently refuse later. */
export function readCookieOptions(reader: OptionReader): ResolvedCookieOptions {
  const cookie: ResolvedCookieOptions = {
    name: reader.text('name', 'SESSION', nameProblem),
    ...readAttributes(reader),
    maxAge: readMaxAge(reader, 'maxAge'),
    domainPattern: readPattern(reader),
    base64: reader.boolean('base64', false),
    signingKeys: readSigningKeys(reader),
    rememberMe: readMaxAge(reader, 'rememberMe'),
    attributes: reader.value('attributes', isFunction, 'a function that takes the request and returns attributes'),
  };
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
  const domainPattern = others.domain === undefined ? cookie.domainPattern : undefined;
  for (const problem of policyProblems({ ...cookie, ...own, domainPattern })) given.problem(problem);
  given.finish();
  reader.finish();
  return { ...own, domainPattern };
}

const DEFAULTS = {
  path: '/',
  domain: undefined,
  httpOnly: true,
  secure: 'auto',
  sameSite: 'lax',
  partitioned: false,
} as const satisfies Partial<ResolvedCookieAttributes>;

function readAttributes(
  reader: OptionReader,
  defaults: Omit<ResolvedCookieAttributes, 'domainPattern'> = DEFAULTS,
): Omit<ResolvedCookieAttributes, 'domainPattern'> {
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
  const ms = reader.duration(name, undefined, { atLeast: SECOND, atMost: LONGEST, wholeSeconds: true });
  return ms === undefined ? undefined : ms / SECOND;
}

/** The pattern, made to match a whole host. */
function readPattern(reader: OptionReader): RegExp | undefined {
  const given = reader.value('domainPattern', isPattern, 'a regular expression, or the text of one');
  if (given === undefined) return undefined;
  const source = typeof given === 'string' ? given : given.source;
  const problem = patternProblem(source);
  if (problem === undefined) return new RegExp(`^(?:${source})$`, 'i');
  reader.problem(`Option \`cookie.domainPattern\` ${problem}.`);
  return undefined;
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

function isPattern(value: unknown): value is RegExp | string {
  return value instanceof RegExp || typeof value === 'string';
}

function isFunction(value: unknown): value is (request: HttpRequestLike) => CookieAttributes | undefined {
  return typeof value === 'function';
}
