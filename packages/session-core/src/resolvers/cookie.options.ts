import type { IncomingMessage } from 'node:http';
import { createSecretKey, type KeyObject } from 'node:crypto';
import type { Duration } from '../option-reading/duration.js';
import { isGuessableKey } from '../option-reading/guessable-key.js';
import type { OptionReader } from '../option-reading/option.reader.js';
import { type SecurityLevel, strictCookieProblems } from '../option-reading/strict-security.js';
import { hostOf, isSecure, isWithin } from './proxied-request.js';

/** Options of the session cookie. */
export interface CookieOptions {
  /**
   * The name under which the cookie is sent and read; cookies of other names are not read.
   * @default '__Host-SESSION' where `secure` is true, `path` is `'/'` and `domain` is not set, so that no other host
   *   can set the cookie; otherwise 'SESSION'. With `security: 'strict'` it is '__Secure-SESSION' where `domain` is
   *   set, and otherwise '__Host-SESSION'
   */
  name?: string;
  /** @default '/' */
  path?: string;
  /**
   * The domain whose hosts share the cookie, such as `'example.com'`. Of a list, the cookie has the longest domain that
   * the host of a request is, or is a subdomain of; on other hosts, it has none. Unset: the browser sends the cookie
   * only to the host that set it.
   */
  domain?: string | readonly string[];
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
  /**
   * Secrets of at least 32 bytes. The first one signs the values, and all verify: a value without a valid signature is
   * ignored without a look-up. Unset: values are not signed. They cannot be guessed in either case.
   */
  signingKeys?: readonly string[];
  /**
   * How long the browser keeps the cookie after it was last sent, in whole seconds and at most `'400d'`. The cookie is
   * sent again when the session is touched. If unset, the browser keeps it until it is closed.
   */
  maxAge?: Duration;
  /** How long the browser keeps the cookie of a session that you passed to `RememberMe`. @default maxAge */
  rememberMe?: Duration;
}

/** The attributes of a cookie that browsers check together: see `CookieOptions`. */
export type CookiePolicy = Readonly<
  Required<Omit<CookieOptions, 'domain' | 'signingKeys' | 'maxAge' | 'rememberMe'>>
> & {
  readonly domain: CookieOptions['domain'];
  /** The level `'strict'` refuses what ASVS forbids. */
  readonly security: SecurityLevel;
};

/** The section `cookie` of the options, checked and with all defaults. Lifetimes are seconds. */
export type ResolvedCookieOptions = ReturnType<typeof readCookieOptions>;

const SECOND = 1000;
/** Milliseconds. Browsers shorten a longer lifetime (RFC 6265bis, 5.5). */
export const LONGEST_COOKIE = 400 * 24 * 60 * 60 * SECOND;
const HOST_NAME = '__Host-SESSION';

/** Reads the `cookie` section. Refuses what browsers would silently refuse later. */
export function readCookieOptions(reader: OptionReader, security: SecurityLevel) {
  const name = reader.text('name', undefined, nameProblem);
  const unnamed = {
    path: reader.text('path', '/', pathProblem),
    domain: readDomain(reader),
    httpOnly: reader.boolean('httpOnly', true),
    secure: reader.oneOf('secure', [true, false, 'auto'], security === 'strict' ? true : 'auto'),
    sameSite: reader.oneOf('sameSite', ['lax', 'strict', 'none', false], 'lax'),
    partitioned: reader.boolean('partitioned', false),
    security,
    // Seconds; `rememberMe` too, without which `maxAge` applies.
    maxAge: readMaxAge(reader, 'maxAge'),
    signingKeys: readSigningKeys(reader),
    rememberMe: readMaxAge(reader, 'rememberMe'),
  };
  const cookie = { name: name ?? defaultName(unnamed), ...unnamed };
  for (const problem of policyProblems(cookie)) reader.problem(problem);
  reader.finish();
  return Object.freeze(cookie);
}

function defaultName({ secure, path, domain, security }: Omit<CookiePolicy, 'name'>): string {
  const isShared = domain !== undefined;
  if (security === 'strict') return isShared ? '__Secure-SESSION' : HOST_NAME;
  return secure === true && path === '/' && !isShared ? HOST_NAME : 'SESSION';
}

function readMaxAge(reader: OptionReader, name: string): number | undefined {
  const ms = reader.duration(name, undefined, { atLeast: SECOND, atMost: LONGEST_COOKIE, wholeSeconds: true });
  return ms === undefined ? undefined : ms / SECOND;
}

/** Of a list, the longest first: of two that contain a host, it counts. */
function readDomain(reader: OptionReader): string | readonly string[] | undefined {
  const domain = reader.value('domain', isDomain, "a domain such as 'example.com', or a list of domains");
  const wrong = [domain ?? []].flat().filter((each) => domainProblem(each) !== undefined);
  for (const each of wrong) {
    const which = typeof domain === 'string' ? '' : `has ${JSON.stringify(each)}, which `;
    reader.problem(`Option \`cookie.domain\` ${which}${domainProblem(each)}.`);
  }
  if (wrong.length > 0) return undefined;
  return typeof domain === 'string' ? domain : domain?.toSorted((one, other) => other.length - one.length);
}

/** Returns the keys as objects that do not print their secrets. */
function readSigningKeys(reader: OptionReader): readonly KeyObject[] {
  const keys = reader.value('signingKeys', isListOfStrings, 'a list of strings') ?? [];
  for (const problem of signingKeyProblems(keys)) reader.problem(problem);
  return keys.filter((key) => key !== '').map((key) => createSecretKey(key, 'utf8'));
}

function isListOfStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === 'string');
}

function isDomain(value: unknown): value is string | string[] {
  return typeof value === 'string' || isListOfStrings(value);
}

// By RFC 6265bis, 4.1.1, the name of a cookie is a token of RFC 9110; path and domain have no control character and no
// ";".
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const PATH = /^\/[\x20-\x3a\x3c-\x7e]*$/;
const LABEL = '[0-9a-z](?:[0-9a-z-]{0,61}[0-9a-z])?';
const DOMAIN = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`, 'i');

// Browsers drop longer cookies and longer attributes (RFC 6265bis, 5.6).
const LONGEST_PAIR = 4096;
const LONGEST_ATTRIBUTE = 1024;
/** The longest value that is sent: a token of 128 characters with its signature. */
export const LONGEST_VALUE = 256;
// RFC 1035, 2.3.4
const LONGEST_HOST = 253;

function nameProblem(name: string): string | undefined {
  if (!TOKEN.test(name)) return 'is not a cookie name (a token of RFC 9110): use letters, digits, "-" and "_"';
  const longest = LONGEST_PAIR - LONGEST_VALUE;
  return name.length > longest ? `is too long for browsers: use at most ${longest} characters` : undefined;
}

function pathProblem(path: string): string | undefined {
  if (!PATH.test(path)) return 'must begin with "/" and hold no ";" and nothing but visible ASCII';
  return path.length > LONGEST_ATTRIBUTE
    ? `is too long for browsers: use at most ${LONGEST_ATTRIBUTE} characters`
    : undefined;
}

function domainProblem(domain: string): string | undefined {
  return isHostName(domain)
    ? undefined
    : "is not a host name: write it without scheme, port and leading dot, such as 'example.org'";
}

function isHostName(host: string): boolean {
  return host.length <= LONGEST_HOST && DOMAIN.test(host);
}

const SHORTEST_KEY = 32;

/** Names the position of a bad key and the reason, never the key. */
function* signingKeyProblems(keys: readonly string[]): Iterable<string> {
  const instead = `draw ${SHORTEST_KEY} random bytes, as \`openssl rand -base64 ${SHORTEST_KEY}\` does.`;
  for (const [position, key] of keys.entries()) {
    const name = `Option \`cookie.signingKeys[${position}]\``;
    if (Buffer.byteLength(key) < SHORTEST_KEY) yield `${name} is too short: ${instead}`;
    else if (isGuessableKey(key)) yield `${name} can be guessed: ${instead}`;
    else if (keys.indexOf(key) < position) yield `${name} repeats an earlier key: remove it.`;
  }
}

/** What browsers hold a cookie to by its name. */
export const PREFIX = /^__(host-http|host|http|secure)-/i;

// These rules come from RFC 6265bis, 4.1.2.7 (SameSite) and 4.1.3 (name prefixes, which browsers compare without regard
// to case). The rules for Partitioned and for the prefixes with Http come from the drafts that Chromium follows.
function* policyProblems(given: CookiePolicy): Iterable<string> {
  const isStrict = given.security === 'strict';
  const prefix = PREFIX.exec(given.name)?.[1]?.toLowerCase();
  if (isStrict) yield* strictCookieProblems(given, prefix);
  // strictCookieProblems() has reported `secure` already.
  const cookie = isStrict ? { ...given, secure: true } : given;
  const named = `A cookie named ${cookie.name}`;
  const isOfHost = prefix?.startsWith('host');
  if (prefix !== undefined && cookie.secure !== true) yield `${named} needs \`cookie.secure\` true.`;
  if (prefix?.endsWith('http') && !cookie.httpOnly) yield `${named} needs \`cookie.httpOnly\` true.`;
  if (isOfHost && cookie.domain !== undefined) yield `${named} takes no \`cookie.domain\`.`;
  if (isOfHost && cookie.path !== '/') yield `${named} needs \`cookie.path\` "/".`;
  if (cookie.sameSite === 'none' && cookie.secure !== true) {
    yield "`cookie.sameSite` 'none' needs `cookie.secure` true.";
  }
  if (cookie.partitioned && cookie.secure !== true) yield '`cookie.partitioned` needs `cookie.secure` true.';
}

/** The attributes of a cookie as the response to one request sets them. */
export interface SetCookieAttributes extends Pick<CookiePolicy, 'path' | 'httpOnly' | 'sameSite' | 'partitioned'> {
  readonly secure: boolean;
  readonly domain?: string;
}

type ConfiguredAttributes = Omit<CookiePolicy, 'name' | 'security'>;

/** Decides Secure and Domain for one request; the other attributes are set as configured. */
export function attributesForRequest(request: IncomingMessage, configured: ConfiguredAttributes): SetCookieAttributes {
  const { path, httpOnly, sameSite, partitioned } = configured;
  const secure = configured.secure === 'auto' ? isSecure(request) : configured.secure;
  const domain = domainFor(request, configured);
  return { path, httpOnly, secure, sameSite, partitioned, ...(domain !== undefined && { domain }) };
}

function domainFor(request: IncomingMessage, { domain }: ConfiguredAttributes): string | undefined {
  if (typeof domain !== 'object') return domain;
  const host = hostOf(request);
  return host !== undefined && isHostName(host) ? domain.find((each) => isWithin(host, each)) : undefined;
}
