import type { CookieOptions, SessionOptions } from 'express-session';
import { OptionReader, type ResolvedCookieOptions } from '@nest-session/core/internal';
import { answerOptions } from './unsupported.options.js';
import { type OldCookie, readCookie } from './cookie-answers.js';
import { type PrincipalOfSession, type PrincipalRule, principalRule } from './principal-rule.js';

/**
 * Options of `ExpressSessionModule.forRoot()`. Besides its own it takes those of express-session, so that you can leave
 * them as they are: each either says what an application had, or is answered at start with what to write instead.
 */
export interface ExpressSessionModuleOptions extends Partial<Omit<SessionOptions, 'secret' | 'cookie'>> {
  /**
   * The secret, or secrets, that express-session signed its cookies with. With it, sessions that connect-redis stored
   * in the same Redis are taken over at their first use. Unset: old cookies are ignored.
   */
  secret?: SessionOptions['secret'];
  /** The name of the old cookie. @default 'connect.sid' */
  name?: string;
  /** What the keys of the old sessions begin with. @default 'sess:' */
  prefix?: string;
  /** The path and domain of the old cookie, so that it can be removed; its other attributes must be those of `SessionModule`. */
  cookie?: CookieOptions;
  /** Tells whose session it is, before each save; false: never. @default the user of Passport, or its `id` */
  principal?: PrincipalOfSession | false;
}

/** The options, checked and with all defaults. */
export interface ResolvedExpressSessionOptions {
  readonly secrets: readonly Secret[];
  readonly name: string;
  readonly prefix: string;
  readonly oldCookie: OldCookie;
  readonly principal: PrincipalRule;
  readonly unset: 'keep' | 'destroy';
  readonly saveUninitialized: boolean;
  /** For the log: what options of express-session amount to here. */
  readonly answers: readonly string[];
}

/** A key of `createHmac()`. */
export type Secret = string | Uint8Array;

/**
 * Reads and checks the options. `cookie`: the cookie of `SessionModule`.
 * @throws InvalidSessionOptionsError naming all problems at once
 */
export function resolveExpressSessionOptions(
  options: ExpressSessionModuleOptions,
  cookie: ResolvedCookieOptions,
): ResolvedExpressSessionOptions {
  const reader = new OptionReader('ExpressSessionModule', options);
  const secret = reader.value('secret', isSecret, 'a non-empty string or Buffer, or a list of them');
  const name = reader.text('name', 'connect.sid', (text) => (COOKIE_NAME.test(text) ? undefined : 'is no cookie name'));
  const prefix = reader.text('prefix', 'sess:', () => undefined);
  const principal = reader.value('principal', isPrincipal, 'a function that takes the session, or false');
  const unset = reader.oneOf('unset', ['keep', 'destroy'], 'keep');
  const saveUninitialized = reader.boolean('saveUninitialized', false);
  const oldCookie = readCookie(reader, options.cookie, cookie);
  if (secret !== undefined && name === cookie.name) {
    reader.problem('Option `name` is the name of the cookie of SessionModule: rename that by `cookie.name` there.');
  }
  const answers = answerOptions(reader, options, cookie);
  reader.finish();
  const secrets = secret === undefined ? [] : ([secret].flat() as Secret[]);
  return { secrets, name, prefix, oldCookie, principal: principalRule(principal), unset, saveUninitialized, answers };
}

const COOKIE_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

function isSecret(value: unknown): value is Secret | Secret[] {
  const secrets = Array.isArray(value) ? (value as unknown[]) : [value];
  const isOne = (each: unknown) => (typeof each === 'string' || each instanceof Uint8Array) && each.length > 0;
  return secrets.length > 0 && secrets.every(isOne);
}

function isPrincipal(value: unknown): value is PrincipalOfSession | false {
  return value === false || typeof value === 'function';
}
