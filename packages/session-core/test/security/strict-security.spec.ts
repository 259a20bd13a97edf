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
  type Session,
  type SessionModuleOptions,
  MapSessionRepository,
} from '../../src/index.js';
import { RandomSessionTokenGenerator } from '../../src/internal.js';
import { startApp } from '../support/session.app.js';

const STRICT = { security: 'strict' } as const;

const sessionOf = (options: SessionModuleOptions): Session =>
  new MapSessionRepository(resolveSessionOptions({ ...options, ...STRICT })).createSession();

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
      anonymousTimeout: 600,
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
    [
      'sessions that are idle for long',
      { timeout: '721m', absoluteTimeout: '24h' },
      "Option `timeout` must be at most '12h'",
    ],
    ['visitors for long', { anonymousTimeout: '721m' }, "Option `anonymousTimeout` must be at most '12h'"],
    ['sessions for long', { absoluteTimeout: '25h' }, "Option `absoluteTimeout` must be at most '24h'"],
    [
      'remembered sessions for long',
      { absoluteTimeout: '31d', cookie: { rememberMe: '30d' } },
      "Option `absoluteTimeout` must be at most '30d'",
    ],
    [
      'users who are remembered for long',
      { cookie: { rememberMe: '31d' } },
      "`cookie.rememberMe` must be at most '30d'",
    ],
    ['a domain of many sites', { cookie: { domain: 'com' } }, '`cookie.domain` must not be "com"'],
    ['such a domain in a list', { cookie: { domain: ['example.org', 'localhost'] } }, 'must not be "localhost"'],
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
    { timeout: '12h', absoluteTimeout: '24h', anonymousTimeout: '12h' },
    { absoluteTimeout: '30d', cookie: { rememberMe: '30d' } },
    { cookie: { domain: 'co.example' } },
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

  it.each<[CookieOptions, number, string]>([
    [{}, 86_400, '24h'],
    [{ rememberMe: '30d' }, 2_592_000, '30d'],
  ])('with the cookie %j, a session gets no longer absolute timeout than %d s', (cookie, longest, duration) => {
    const session = sessionOf({ cookie });
    session.absoluteTimeout = duration;
    for (const timeout of ['never', -1, longest + 1, '400d']) {
      expect(() => (session.absoluteTimeout = timeout as number)).toThrow(`at most ${longest} seconds with`);
      expect(session.absoluteTimeout).toBe(longest);
    }
    session.signIn('ann');
    expect(() => (session.absoluteTimeout = 'never' as never)).toThrow(RangeError);
  });

  it('a visitor may store little, a user as much as ever, and a bound of the application counts for both', async () => {
    const visitor = sessionOf({});
    const fill = (session: Session) => {
      for (let i = 0; i < 40; i++) session.setAttribute(`a${i}`, i);
    };
    expect(() => fill(visitor)).toThrow(/"a32" would be attribute 33 of its session/);
    expect(() => visitor.setAttribute('a1', 'x'.repeat(16_384))).toThrow(/"a1" takes 16386 bytes/);
    expect(() => {
      visitor.setAttribute('a1', 'x'.repeat(9000));
      visitor.setAttribute('a2', 'x'.repeat(9000));
    }).toThrow(/"a2" would make its session take 18\d{3} bytes/);
    await visitor.save();
    visitor.signIn('ann');
    fill(visitor);
    visitor.setAttribute('a1', 'x'.repeat(60_000));
    expect(await visitor.save()).toBe('saved');
    // What is there may stay, and not grow, when nobody is signed in any more.
    visitor.principalName = undefined;
    visitor.setAttribute('a2', 3);
    expect(await visitor.save()).toBe('saved');
    expect(() => visitor.setAttribute('more', 1)).toThrow(/would be attribute/);
    const own = sessionOf({ maxAttributes: 40 });
    fill(own);
    own.setAttribute('a1', 'x'.repeat(60_000));
    expect(await own.save()).toBe('saved');
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
