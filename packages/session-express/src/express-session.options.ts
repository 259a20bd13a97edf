import { isAsyncFunction } from 'node:util/types';
import type { CookieOptions, SessionOptions } from 'express-session';
import { LONGEST_COOKIE, OptionReader, type ResolvedCookieOptions } from '@nest-session/core/internal';
import { type PrincipalOfSession, principalProblem, principalRule } from './principal/principal-rule.js';

/** The attributes with which browsers remove the old cookie. All but its path and domain are those of the new one. */
interface OldCookie extends Pick<ResolvedCookieOptions, 'httpOnly' | 'secure' | 'sameSite' | 'partitioned'> {
  readonly path: string;
  readonly domain?: string | undefined;
}

const WHERE = 'in SessionModule.forRoot()';

/** Attributes that differ are refused, because the application would rely on what the cookie does not have. */
function readCookie(reader: OptionReader, given: CookieOptions | undefined, cookie: ResolvedCookieOptions): OldCookie {
  const { httpOnly, secure, sameSite, partitioned } = cookie;
  const attributes = { httpOnly, secure, sameSite, partitioned };
  if (typeof given === 'function') {
    const problem =
      'an object: for other attributes by request, extend CookieSessionIdResolver and override cookieFor()';
    reader.value('cookie', (value): value is never => !value, problem);
    return { ...attributes, path: '/' };
  }
  const section = reader.section('cookie');
  const path = section.text('path', '/', () => undefined);
  const domain = readDomain(section, cookie);
  const { maxAge } = given ?? {};
  for (const [name, expected] of Object.entries({ ...attributes, maxAge: cookie.maxAge })) {
    const value = section.value(name, isAny, 'anything');
    const meant = name === 'sameSite' && value === true ? 'strict' : name === 'maxAge' ? inSeconds(maxAge) : value;
    if (value === undefined || value === null || meant === expected) continue;
    if (value === 'auto' && name === 'sameSite') {
      section.problem(
        `Option \`cookie.sameSite\` cannot be 'auto': extend CookieSessionIdResolver and override cookieFor().`,
      );
      continue;
    }
    section.problem(
      `Option \`cookie.${name}\` differs from the session cookie: set \`${written(name, meant)}\` ${WHERE}.`,
    );
  }
  for (const [name, problem] of Object.entries(UNSUPPORTED))
    if (section.value(name, isAny, 'anything') != null) section.problem(`Option \`cookie.${name}\` ${problem}.`);
  section.finish();
  return { ...attributes, path, domain };
}

/** The new cookie needs one as well, or the hosts of the domain do not share it any more. */
function readDomain(section: OptionReader, cookie: ResolvedCookieOptions): string | undefined {
  const domain = section.text('domain', undefined, () => undefined);
  if (domain !== undefined && cookie.domain === undefined) {
    const remedy = written('domain', domain.replace(/^\./, ''));
    section.problem(
      `Option \`cookie.domain\` differs from the session cookie: set \`${remedy}\` ${WHERE}, or remove it here, so that ` +
        'only the host that sets the cookie gets it.',
    );
  }
  return domain;
}

const UNSUPPORTED = {
  expires: `would end all cookies at the same time: set \`cookie: { maxAge: '1d' }\` ${WHERE}`,
  priority: 'has no counterpart. It only tells some browsers which cookies to drop first: remove it',
  signed: 'does nothing in express-session: remove it',
  encode: 'has no counterpart, because the value of the session cookie needs no encoding: remove it',
} as const;

function written(name: string, value: unknown): string {
  if (name !== 'maxAge') return `cookie: { ${name}: ${JSON.stringify(value)} }`;
  const lifetime = value === LONGEST ? `${LONGEST / 86_400}d` : `${String(value)}s`;
  return `timeout: '${lifetime}', cookie: { maxAge: '${lifetime}' }`;
}

/** Seconds. Browsers keep no cookie longer, so SessionModule takes no more. */
const LONGEST = LONGEST_COOKIE / 1000;

function inSeconds(maxAge: number | null | undefined): number | undefined {
  return typeof maxAge === 'number' ? Math.min(maxAge / 1000, LONGEST) : undefined;
}

function isAny(_value: unknown): _value is unknown {
  return true;
}

/** What an option means here. A `problem` says why the option cannot be kept, and what to do instead. */
type Answer = string | { readonly problem: string };

const ANSWERS: Readonly<Record<string, (value: unknown, cookie: ResolvedCookieOptions) => Answer>> = {
  resave: () => 'a request without changes writes nothing, except to renew the session once per `touchInterval`',
  rolling: (value, { maxAge }) => {
    if (value === true || maxAge === undefined)
      return 'a cookie with a lifetime is sent again whenever the session is renewed';
    return {
      problem:
        'cannot be false, because a cookie with a lifetime is sent again whenever the session is renewed: remove it. ' +
        'To end sessions that are still in use, set `absoluteTimeout` in SessionModule.forRoot()',
    };
  },
  proxy: () => 'the platform decides which proxies it trusts',
  genid: () => ({ problem: 'has the counterpart `sessionTokenGenerator` of SessionModule.forRoot(): move it there' }),
  store: () => ({ problem: 'is not needed, because RedisSessionModule.forRoot() stores the sessions: remove it' }),
};

function answerOptions(reader: OptionReader, options: object, cookie: ResolvedCookieOptions): string[] {
  const answers: string[] = [];
  for (const [name, answer] of Object.entries(ANSWERS)) {
    const value = reader.value(name, isAny, 'anything');
    if (value === undefined || !(name in options)) continue;
    const answered = answer(value, cookie);
    if (typeof answered === 'string') answers.push(`\`${name}\`: ${answered}`);
    else reader.problem(`Option \`${name}\` ${answered.problem}.`);
  }
  return answers;
}

/**
 * Options of `ExpressSessionModule.forRoot()`: its own, and those of express-session, which you can leave in place. For
 * one without a counterpart, the module says at start what to write instead.
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
  /** The path and domain of the old cookie, to remove it. The other attributes must equal those of `SessionModule`. */
  cookie?: CookieOptions;
  /**
   * Returns the principal of a session before each save: see `PrincipalOfSession`. It is tried at start on a session
   * without properties, where it must return undefined. With `'passport'`, it is the user that Passport has signed in:
   * what it keeps in the session, or the `id`, `_id` or `sub` of that. With false, the application sets the principal
   * itself.
   * @default 'passport', but for the old sessions of option `secret`, which are taken over only with `'passport'`
   */
  principal?: PrincipalOfSession | 'passport' | false;
}

export type ResolvedExpressSessionOptions = ReturnType<typeof resolveExpressSessionOptions>;

export type Secret = string | Uint8Array;

/** `cookie`: that of `SessionModule`. @throws InvalidSessionOptionsError that names all problems at once */
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
    "a function that takes the session and returns at once, not an async one, or false, or 'passport'",
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
    // Undefined: the application sets it.
    principal: principalRule(principal),
    oldCookie,
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

function isPrincipal(value: unknown): value is PrincipalOfSession | 'passport' | false {
  return value === false || value === 'passport' || (typeof value === 'function' && !isAsyncFunction(value));
}
