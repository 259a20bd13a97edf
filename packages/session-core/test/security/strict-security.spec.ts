import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { LogRecorder } from '@nest-session/test-infrastructure';
import { resolveSessionOptions } from '../../src/configuration/session.options.js';
import {
  CompositeSessionIdResolver,
  type CookieOptions,
  CookieSessionIdResolver,
  HeaderSessionIdResolver,
  InvalidSessionOptionsError,
  type SessionModuleOptions,
} from '../../src/index.js';
import { RandomSessionTokenGenerator } from '../../src/internal.js';
import { startApp } from '../support/session.app.js';

const STRICT = { security: 'strict' } as const;

function problemsOf(options: SessionModuleOptions): readonly string[] {
  try {
    resolveSessionOptions(options);
    return [];
  } catch (error) {
    if (error instanceof InvalidSessionOptionsError) return error.problems;
    throw error;
  }
}

const generatorOf = (generate: () => string) =>
  Object.assign(new RandomSessionTokenGenerator(), { generate, canHaveDrawn: () => true });
const hex = (bytes: number) => () => randomBytes(bytes).toString('hex');
const digits = (count: number) => () => Array.from({ length: count }, () => randomInt(10)).join('');

describe("with `security: 'strict'`", () => {
  it('the defaults are a __Host- cookie for https, and an end for every session', () => {
    const { cookie, timeout, anonymousTimeout, absoluteTimeout } = resolveSessionOptions(STRICT);
    expect({ timeout, anonymousTimeout, absoluteTimeout }).toEqual({
      timeout: 1800,
      anonymousTimeout: 1800,
      absoluteTimeout: 43_200,
    });
    expect(cookie).toMatchObject({ name: '__Host-SESSION', secure: true, httpOnly: true, sameSite: 'lax', path: '/' });
  });

  it.each<[CookieOptions, string]>([
    [{ domain: 'example.org' }, '__Secure-SESSION'],
    [{ domain: ['example.org'] }, '__Secure-SESSION'],
    [{ domain: 'example.org', path: '/app', name: '__Secure-sid' }, '__Secure-sid'],
    [{ domain: 'example.org', name: '__Http-sid' }, '__Http-sid'],
    [{ name: '__Host-Http-sid' }, '__Host-Http-sid'],
  ])('the cookie with %j is named %s', (cookie, name) => {
    expect(resolveSessionOptions({ ...STRICT, cookie }).cookie.name).toBe(name);
  });

  it.each<[string, SessionModuleOptions, string]>([
    ["`secure: 'auto'`", { cookie: { secure: 'auto' } }, "to develop over http, use `security: 'standard'` there"],
    ['`secure: false`', { cookie: { secure: false } }, "`cookie.secure` must be true with `security: 'strict'`"],
    ['a cookie for scripts', { cookie: { httpOnly: false } }, '`cookie.httpOnly` must be true'],
    [
      'a cookie without SameSite',
      { cookie: { sameSite: false } },
      "`cookie.sameSite` must be 'lax', 'strict' or 'none'",
    ],
    ['a name without a prefix', { cookie: { name: 'sid' } }, '`cookie.name` must begin with "__Host-"'],
    [
      'the name of a shared cookie for one host',
      { cookie: { name: '__Secure-sid', secure: true } },
      '`cookie.name` must begin with "__Host-"',
    ],
    ['a path', { cookie: { path: '/app' } }, 'A cookie named __Host-SESSION needs `cookie.path` "/"'],
    [
      'a shared cookie without a prefix',
      { cookie: { domain: 'example.org', name: 'sid' } },
      '`cookie.name` must begin with "__Secure-" or "__Host-"',
    ],
    ['sessions that are idle for ever', { timeout: 'never' }, "Option `timeout` must not be 'never'"],
    ['visitors for ever', { anonymousTimeout: 'never' }, "Option `anonymousTimeout` must not be 'never'"],
    ['sessions for ever', { absoluteTimeout: 'never' }, "Option `absoluteTimeout` must not be 'never'"],
    ['plain ids', { sessionIds: 'plain' }, "Option `sessionIds` must be 'hashed'"],
    ['UUIDs', { sessionTokenGenerator: generatorOf(() => randomUUID()) }, 'draws tokens of at most 122 random bits'],
    ['15 bytes', { sessionTokenGenerator: generatorOf(hex(15)) }, 'draws tokens of at most 120 random bits'],
    ['38 digits', { sessionTokenGenerator: generatorOf(digits(38)) }, 'draws tokens of at most 126 random bits'],
    ['24 small letters', { sessionTokenGenerator: generatorOf(() => hex(16)().slice(0, 23) + 'z') }, 'at most 124'],
    ['a resolver', { sessionIdResolver: new CookieSessionIdResolver({ secure: true }) }, 'a cookie that is not strict'],
    [
      'a resolver behind another one',
      {
        sessionIdResolver: new CompositeSessionIdResolver(
          HeaderSessionIdResolver.xAuthToken(),
          new CookieSessionIdResolver({ secure: true }),
        ),
      },
      "write `new CookieSessionIdResolver({ ... }, 'strict')`",
    ],
  ])('the start fails with one problem for %s', (_, options, problem) => {
    expect(problemsOf(options)).toEqual([]);
    expect(problemsOf({ ...options, ...STRICT })).toEqual([expect.stringContaining(problem)]);
  });

  it('the start fails with all problems in one error', () => {
    const cookie = { name: 'sid', secure: false, httpOnly: false, sameSite: false } as const;
    expect(problemsOf({ ...STRICT, cookie, timeout: 'never', sessionIds: 'plain' })).toHaveLength(6);
    // What browsers refuse anyway is said once, and not again by the rules about Secure.
    const other = { name: '__Host-sid', domain: 'example.org', secure: false, sameSite: 'none' } as const;
    expect(problemsOf({ ...STRICT, cookie: other })).toEqual([
      expect.stringContaining('`cookie.secure` must be true'),
      expect.stringContaining('A cookie named __Host-sid takes no `cookie.domain`'),
    ]);
  });

  it.each<SessionModuleOptions>([
    { cookie: { sameSite: 'none' } },
    { cookie: { sameSite: 'strict', secure: true } },
    { multipleSessions: true },
    { timeout: '30d', absoluteTimeout: '30d', anonymousTimeout: '30d' },
    { sessionTokenGenerator: generatorOf(hex(16)) },
    { sessionTokenGenerator: generatorOf(() => randomBytes(17).toString('base64url')) },
    { sessionIdResolver: HeaderSessionIdResolver.xAuthToken() },
    { sessionIdResolver: new CookieSessionIdResolver(undefined, 'strict') },
    {
      sessionIdResolver: new CompositeSessionIdResolver(
        new CookieSessionIdResolver({ sameSite: 'strict' }, 'strict'),
        HeaderSessionIdResolver.xAuthToken(),
      ),
    },
  ])('the application starts with %j', (options) => expect(problemsOf({ ...options, ...STRICT })).toEqual([]));

  it('the start fails for the class of a resolver whose cookie is not strict', async () => {
    class OwnResolver extends CookieSessionIdResolver {
      constructor() {
        super({ secure: true });
      }
    }
    class StrictResolver extends CookieSessionIdResolver {
      constructor() {
        super({}, 'strict');
      }
    }
    const started = startApp({ session: { ...STRICT, sessionIdResolver: OwnResolver } });
    await expect(started).rejects.toThrow('Option `sessionIdResolver` has a cookie that is not strict');
    const { app } = await startApp({ session: { ...STRICT, sessionIdResolver: StrictResolver } });
    await app.close();
  });

  it('a remembered session is one with a stated absolute timeout', () => {
    const log = new LogRecorder();
    Logger.overrideLogger(log);
    expect(problemsOf({ ...STRICT, cookie: { rememberMe: '30d' }, absoluteTimeout: '30d' })).toEqual([]);
    expect(log.lines).toEqual([]);
    expect(problemsOf({ ...STRICT, cookie: { rememberMe: '30d' } })).toEqual([]);
    expect(log.lines).toEqual([expect.stringContaining('remembered sessions end after 43200s')]);
  });
});
