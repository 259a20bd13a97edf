import { createSecretKey, type KeyObject } from 'node:crypto';
import type { Duration } from '../option-reading/duration.js';
import type { OptionReader } from '../option-reading/option.reader.js';
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
}

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

/** The name of a cookie that has none of its own. */
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
