import { isAsyncFunction } from 'node:util/types';
import type { CookieOptions, SessionOptions } from 'express-session';
import { OptionReader, type ResolvedCookieOptions } from '@nest-session/core/internal';
import { answerOptions } from './unsupported.options.js';
import { readCookie } from './cookie-answers.js';
import { type PrincipalOfSession, principalProblem, principalRule } from './principal-rule.js';

/**
 * Options of `ExpressSessionModule.forRoot()`. In addition to its own options, it accepts those of express-session, so
 * you can leave them in place. For an option without a counterpart, the module says at start what to write instead.
 */
export interface ExpressSessionModuleOptions extends Partial<Omit<SessionOptions, 'secret' | 'cookie'>> {
  /**
   * The secret or secrets with which express-session signed its cookies. If set, a session that connect-redis stored in
   * the same Redis is taken over at its first use. If unset, old cookies are ignored.
   */
  secret?: SessionOptions['secret'];
  /** The name of the old cookie. @default 'connect.sid' */
  name?: string;
  /** The prefix of the keys of the old sessions. @default 'sess:' */
  prefix?: string;
  /**
   * The path and domain of the old cookie, so that it can be removed. Where it has a domain, `SessionModule` must have
   * one too. The other attributes must equal those of `SessionModule`.
   */
  cookie?: CookieOptions;
  /**
   * Returns the principal of a session before each save: see `PrincipalOfSession`. It is tried at start on a session
   * without properties, where it must return undefined. With false, the application sets the principal itself.
   * @default the user that Passport has signed in: what it keeps in the session, or the `id`, `_id` or `sub` of that
   */
  principal?: PrincipalOfSession | false;
}

/** The options, checked and with all defaults. */
export type ResolvedExpressSessionOptions = ReturnType<typeof resolveExpressSessionOptions>;

/** A key of `createHmac()`. */
export type Secret = string | Uint8Array;

/**
 * Reads and checks the options.
 * @param cookie the cookie of `SessionModule`
 * @throws InvalidSessionOptionsError that names all problems at once
 */
export function resolveExpressSessionOptions(options: ExpressSessionModuleOptions, cookie: ResolvedCookieOptions) {
  const reader = new OptionReader('ExpressSessionModule', options);
  const secret = reader.value('secret', isSecret, 'a non-empty string or Buffer, or a list of them');
  const name = reader.text('name', 'connect.sid', (text) =>
    COOKIE_NAME.test(text) ? undefined : 'is not a cookie name',
  );
  const prefix = reader.text('prefix', 'sess:', () => undefined);
  const principal = reader.value(
    'principal',
    isPrincipal,
    'a function that takes the session and returns at once, not an async one, or false',
  );
  const problem = typeof principal === 'function' ? principalProblem(principal) : undefined;
  if (problem !== undefined) reader.problem(`Option \`principal\` ${problem}.`);
  const unset = reader.oneOf('unset', ['keep', 'destroy'], 'keep');
  const saveUninitialized = reader.boolean('saveUninitialized', false);
  const oldCookie = readCookie(reader, options.cookie, cookie);
  if (secret !== undefined && name === cookie.name) {
    reader.problem('Option `name` is also the name of the cookie of SessionModule: set another `cookie.name` there.');
  }
  const answers = answerOptions(reader, options, cookie);
  if (name !== 'connect.sid' && /^(__Host-|__Secure-)?SESSION$/.test(cookie.name)) {
    answers.push(
      `\`name\`: of the old cookie, the new one is ${cookie.name}. Where several applications share a host, set ` +
        '`cookie: { name }` in SessionModule.forRoot(), another one in each',
    );
  }
  reader.finish();
  const secrets = secret === undefined ? [] : ([secret].flat() as Secret[]);
  return {
    secrets,
    name,
    prefix,
    oldCookie,
    principal: principalRule(principal),
    unset,
    saveUninitialized,
    // The platform may be told to trust a proxy after the modules were constructed.
    needsProxy: options.proxy === true,
    // The log lines that say what options of express-session mean here.
    answers,
  };
}

const COOKIE_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

function isSecret(value: unknown): value is Secret | Secret[] {
  const secrets = Array.isArray(value) ? (value as unknown[]) : [value];
  const isOne = (each: unknown) => (typeof each === 'string' || each instanceof Uint8Array) && each.length > 0;
  return secrets.length > 0 && secrets.every(isOne);
}

function isPrincipal(value: unknown): value is PrincipalOfSession | false {
  return value === false || (typeof value === 'function' && !isAsyncFunction(value));
}
