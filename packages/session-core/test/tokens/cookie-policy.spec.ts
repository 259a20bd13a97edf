import {
  CookieSessionIdResolver,
  HeaderSessionIdResolver,
  InvalidSessionOptionsError,
  type SessionModuleOptions,
} from '../../src/index.js';
import { resolveSessionOptions } from '../../src/configuration/session.options.js';
import { SIGNING_KEYS } from '../support/signing.keys.js';

function problemsOf(options: unknown): readonly string[] {
  try {
    resolveSessionOptions(options as SessionModuleOptions);
  } catch (error) {
    if (error instanceof InvalidSessionOptionsError) return error.problems;
    throw error;
  }
  return [];
}

const [key] = SIGNING_KEYS;
const secure = true;

// Invalid options, and the problem and advice in the error.
const BAD: readonly (readonly [object, RegExp])[] = [
  [{ name: '' }, /`cookie.name` is not a cookie name .*: use letters, digits/],
  [{ name: 'a b' }, /`cookie.name` is not a cookie name .*: use letters, digits/],
  [{ name: 'a=b' }, /`cookie.name` is not a cookie name .*: use letters, digits/],
  [{ name: 'a;b' }, /`cookie.name` is not a cookie name .*: use letters, digits/],
  [{ name: 'a\r\nb' }, /`cookie.name` is not a cookie name .*: use letters, digits/],
  [{ name: 'sitzungsschlüssel' }, /`cookie.name` is not a cookie name .*: use letters, digits/],
  [{ name: 'a'.repeat(4000) }, /`cookie.name` is too long for browsers: use at most 3840 characters/],
  [{ name: 7 }, /`cookie.name` must be a string/],
  [{ name: '__Host-sid' }, /A cookie named __Host-sid needs `cookie.secure` true/],
  [{ name: '__Host-sid', secure: false }, /A cookie named __Host-sid needs `cookie.secure` true/],
  [{ name: '__Host-sid', secure, domain: 'example.org' }, /takes no `cookie.domain`/],
  [{ name: '__Host-sid', secure, domain: ['example.org'] }, /takes no `cookie.domain`/],
  [{ name: '__Host-sid', secure, path: '/app' }, /needs `cookie.path` "\/"/],
  [{ name: '__host-sid', secure, path: '/app' }, /A cookie named __host-sid needs `cookie.path` "\/"/],
  [{ name: '__Secure-sid' }, /A cookie named __Secure-sid needs `cookie.secure` true/],
  [{ name: '__SeCuRe-sid', secure: false }, /A cookie named __SeCuRe-sid needs `cookie.secure` true/],
  [{ name: '__Http-sid', secure, httpOnly: false }, /A cookie named __Http-sid needs `cookie.httpOnly` true/],
  [{ name: '__Host-Http-sid', secure, path: '/app' }, /A cookie named __Host-Http-sid needs `cookie.path`/],
  [{ path: '' }, /`cookie.path` must begin with "\/"/],
  [{ path: 'app' }, /`cookie.path` must begin with "\/"/],
  [{ path: '/app; Domain=evil.org' }, /`cookie.path` must begin with "\/" and hold no ";"/],
  [{ path: '/app\n' }, /`cookie.path` must .* nothing but visible ASCII/],
  [{ path: `/${'a'.repeat(1024)}` }, /`cookie.path` is too long for browsers: use at most 1024/],
  [{ domain: '.example.org' }, /`cookie.domain` is not a host name: write it without .* leading dot/],
  [{ domain: 'https://example.org' }, /`cookie.domain` is not a host name: write it without scheme/],
  [{ domain: 'example.org:443' }, /`cookie.domain` is not a host name: write it without scheme, port/],
  [{ domain: 'example..org' }, /`cookie.domain` is not a host name/],
  [{ domain: '-example.org' }, /`cookie.domain` is not a host name/],
  [{ domain: `${'a'.repeat(64)}.org` }, /`cookie.domain` is not a host name/],
  [{ domain: [] }, /`cookie.domain` must be a domain such as 'example.com', or a list of domains/],
  [{ domain: [/example.org/] }, /`cookie.domain` must be a domain such as 'example.com', or a list of domains/],
  [
    { domain: ['example.com', '.example.org'] },
    /`cookie.domain` has "\.example\.org", which is not a host name: write it without/,
  ],
  [{ domain: ['*.example.org'] }, /`cookie.domain` has "\*\.example\.org", which is not a host name/],
  [{ domain_s: ['example.com'] }, /Unknown option `cookie.domain_s`: known are/],
  [{ maxAge: 3600 }, /`cookie.maxAge` is the bare number 3600: name its unit, such as '3600s'/],
  [{ maxAge: 'tomorrow' }, /`cookie.maxAge` is not a duration: write a number and its unit/],
  [{ maxAge: '500ms' }, /`cookie.maxAge` is 500ms: it must be at least 1s/],
  [{ maxAge: '90500ms' }, /`cookie.maxAge` must be a number of whole seconds/],
  [{ maxAge: '401d' }, /`cookie.maxAge` is 401d: it must be at most 400d/],
  [{ maxAge: 'never' }, /`cookie.maxAge` is not a duration/],
  [{ maxAge: '1m' }, /`cookie.maxAge` must be longer than `touchInterval`/],
  [{ rememberMe: true }, /`cookie.rememberMe` is not a duration/],
  [{ rememberMe: '401d' }, /`cookie.rememberMe` is 401d: it must be at most/],
  [{ rememberMe: '30m' }, /`cookie.rememberMe` must be longer than `timeout`/],
  [{ httpOnly: 'yes' }, /`cookie.httpOnly` must be true or false/],
  [{ secure: 'always' }, /`cookie.secure` must be one of true, false, "auto"/],
  [{ sameSite: 'Lax' }, /`cookie.sameSite` must be one of "lax", "strict", "none", false/],
  [{ sameSite: 'none' }, /`cookie.sameSite` 'none' needs `cookie.secure` true/],
  [{ sameSite: 'none', secure: false }, /`cookie.sameSite` 'none' needs `cookie.secure` true/],
  [{ partitioned: true }, /`cookie.partitioned` needs `cookie.secure` true/],
  [{ partitioned: 1 }, /`cookie.partitioned` must be true or false/],
  [{ signingKeys: key }, /`cookie.signingKeys` must be a list of strings/],
  [{ signingKeys: [] }, /`cookie.signingKeys` must be a list of strings/],
  [{ signingKeys: [key, undefined] }, /`cookie.signingKeys` must be a list of strings/],
  [{ signingKeys: [''] }, /`cookie.signingKeys\[0\]` is too short: draw 32 random bytes, as `openssl rand/],
  [{ signingKeys: [key, 'short'] }, /`cookie.signingKeys\[1\]` is too short: draw/],
  [{ signingKeys: ['keyboard cat, but a very long one'] }, /`cookie.signingKeys\[0\]` can be guessed: draw/],
  [{ signingKeys: ['Change-Me-Change-Me-Change-Me-1234'] }, /`cookie.signingKeys\[0\]` can be guessed: draw/],
  [{ signingKeys: ['zyxwvutsrqponmlkjihgfedcba987654'] }, /`cookie.signingKeys\[0\]` can be guessed: draw/],
  [{ signingKeys: ['Tr0ub4dor&3xyz_Tr0ub4dor&3xyz_Tr'] }, /`cookie.signingKeys\[0\]` can be guessed: draw/],
  [{ signingKeys: ['a'.repeat(64)] }, /`cookie.signingKeys\[0\]` can be guessed: draw/],
  [{ signingKeys: [key, key] }, /`cookie.signingKeys\[1\]` repeats an earlier key: remove it/],
  [{ samesite: 'lax' }, /Unknown option `cookie.samesite`: known are/],
  [{ expires: '1d' }, /Unknown option `cookie.expires`: /],
  [{ max_age: '1d' }, /Unknown option `cookie.max_age`: known are/],
  [{ httponly: false }, /Unknown option `cookie.httponly`: known are/],
  [{ signingKey: key }, /Unknown option `cookie.signingKey`: known are/],
];

describe('the cookie options', () => {
  it.each(BAD)('are refused with advice: %p', (cookie, problem) => {
    const problems = problemsOf({ cookie });
    expect(problems).toEqual([expect.stringMatching(problem)]);
    expect(problems[0]).not.toContain(key);
  });

  it('are refused with all their problems in one message', () => {
    const cookie = {
      name: '__Host-sid',
      domain: '.example.org',
      path: '/app',
      maxAge: 3600,
      sameSite: 'none',
      partitioned: true,
      signingKeys: ['short', 'a'.repeat(40)],
      httponly: true,
    };
    expect(problemsOf({ cookie, timeout: 30, touchinterval: '1m' })).toEqual([
      expect.stringContaining('`timeout`'),
      expect.stringContaining('`cookie.domain` is not a host name'),
      expect.stringContaining('`cookie.maxAge`'),
      expect.stringContaining('`cookie.signingKeys[0]` is too short'),
      expect.stringContaining('`cookie.signingKeys[1]` can be guessed'),
      expect.stringContaining('needs `cookie.secure` true'),
      expect.stringContaining('needs `cookie.path` "/"'),
      expect.stringContaining("'none' needs `cookie.secure` true"),
      expect.stringContaining('`cookie.partitioned` needs `cookie.secure` true'),
      expect.stringContaining('`cookie.httponly`: known are'),
      expect.stringContaining('`touchinterval`: known are'),
    ]);
  });

  it.each<object>([
    {},
    { name: '__Host-sid', secure: true },
    { name: '__Host-Http-sid', secure: true, sameSite: 'none', partitioned: true },
    { name: '__Secure-sid', secure: true, domain: 'example.org', path: '/app' },
    { name: 'sid', domain: 'localhost' },
    { domain: ['example.org'] },
    { domain: ['example.com', 'example.org', 'Shop.example.org', 'localhost'] },
    { maxAge: '400d', rememberMe: '1h' },
    { maxAge: '61s' },
    { sameSite: false },
    { signingKeys: SIGNING_KEYS },
  ])('are accepted: %p', (cookie) => {
    expect(problemsOf({ cookie })).toEqual([]);
  });

  it.each<[unknown, RegExp]>([
    [{ sessionIdResolver: 'header' }, /`sessionIdResolver` must be a SessionIdResolver, or the class of one/],
    [{ sessionIdResolver: class {} }, /`sessionIdResolver` must be a SessionIdResolver, or the class of one/],
    [{ sessionIdResolver: { resolve() {}, send() {} } }, /`sessionIdResolver` must be a SessionIdResolver/],
    [
      { sessionIdResolver: HeaderSessionIdResolver.xAuthToken(), cookie: { name: 'sid' } },
      /`cookie` has no effect beside `sessionIdResolver`: remove it, or give it to new CookieSessionIdResolver/,
    ],
  ])('have to be given to the resolver that is used: %p', (options, problem) => {
    expect(problemsOf(options)).toEqual([expect.stringMatching(problem)]);
  });

  it('are checked by the constructor of a resolver too', () => {
    expect(() => new CookieSessionIdResolver({ name: '__Host-sid', path: '/app' })).toThrow(
      /^CookieSessionIdResolver: A cookie named __Host-sid needs `cookie.secure` true. .* needs `cookie.path` "\/".$/,
    );
  });
});
