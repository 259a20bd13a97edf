import { ServerResponse } from 'node:http';
import { inspect } from 'node:util';
import { Logger } from '@nestjs/common';
import { LogRecorder } from '@nest-session/test-infrastructure';
import { CookieSessionIdResolver, type SessionModuleOptions } from '../../src/index.js';
import { generateSessionKey } from '../../src/internal.js';
import { resolveSessionOptions } from '../../src/configuration/session.options.js';
import { requestWith } from '../support/node.request.js';
import { SIGNING_KEYS } from '../support/signing.keys.js';

const token = 'Ab-_'.padEnd(43, '0');
const other = 'B'.repeat(43);
const CLIENT = { isRemembered: false };

function resolverOf(cookie: SessionModuleOptions['cookie'] = {}) {
  return new CookieSessionIdResolver(cookie);
}

/** The last of 43 characters holds four of the 256 bits, and two bits that are not decoded. */
function withOtherEnd(text: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return text.slice(0, -1) + alphabet[alphabet.indexOf(text.at(-1)!) ^ 1];
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64');
}

function tokensOf(cookie: string, options: SessionModuleOptions['cookie'] = {}): string[] {
  return resolverOf(options)
    .resolve(requestWith({ cookie }))
    .map((each) => each.reveal());
}

describe('CookieSessionIdResolver', () => {
  it.each([
    [`SESSION=${token}`, [token]],
    [`a=1; SESSION=${token}; b=2`, [token]],
    [`a=1;SESSION=${token}`, [token]],
    [`\t SESSION= ${token} `, [token]],
    [`SESSION=; SESSION=short; SESSION=${token}; SESSION=${other}`, [token, other]],
    [`SESSION=${other}; a=1; SESSION=${token}; SESSION=${other}`, [other, token]],
    [`a=SESSION=${token}`, []],
    [`a="; SESSION=x"; SESSIONS=${token}`, []],
    [`session=${token}`, []],
    [`SES%53ION=${token}`, []],
    [`session=${token}; SES%53ION=${token}; SESSION=${other}`, [other]],
    [`SESSION="${token}"; a="1"; SESSION= "${other}" `, [token, other]],
    [`SESSION="${token}; SESSION=${token}"; SESSION=""; SESSION="`, []],
    [`SESSION=""${token}""`, []],
    [`SESSION=${token}!`, []],
    [`SESSION=${encode(token)}`, []],
    // Browsers do not treat these as white space, so another host may set such a name, also before a __Host- prefix.
    [`\u00a0SESSION=${token}`, []],
    [`SESSION\u00a0=${token}`, []],
    [`\vSESSION=${token}; SESSION=\f${token}`, []],
    [`SESSION=\u00a0${token}; SESSION=${other}\u00a0`, []],
    [`SESSION`, []],
    [';;;=;', []],
    ['', []],
  ])('reads %j', (cookie, expected) => {
    expect(tokensOf(cookie)).toEqual(expected);
  });

  it('reads no cookie without a name, even if its value begins with the name of the session cookie', () => {
    const name = 'n'.repeat(42);
    expect(tokensOf(`${name}=; ${name}x`, { name })).toEqual([]);
  });

  it('reads no token from a request without cookies', () => {
    expect(resolverOf().resolve(requestWith({}))).toEqual([]);
  });

  it.each([
    ['tokens', (tokens: string[]) => tokens],
    ['refused values', (tokens: string[]) => tokens.map((each, i) => (i === 0 || i === 64 ? each : `!${each}`))],
    ['one value again and again', (tokens: string[]) => tokens.map((each, i) => (i === 64 ? each : tokens[0]!))],
  ])('looks at the first 64 values of its name, and logs once that there were more: %s', (_, valuesOf) => {
    const log = new LogRecorder();
    Logger.overrideLogger(log);
    const values = valuesOf(Array.from({ length: 65 }, () => generateSessionKey().token.reveal()));
    const cookie = `a=1; ${values.map((each) => `SESSION=${each}`).join('; ')}; b=2`;
    const resolver = resolverOf();
    for (let request = 0; request < 3; request++) {
      const found = resolver.resolve(requestWith({ cookie })).map((each) => each.reveal());
      expect(found).toEqual([...new Set(values.slice(0, 64))].filter((each) => !each.startsWith('!')));
    }
    const reason = /^warn .*The cookie SESSION came more than 64 times in one request, so the others were ignored/;
    expect(log.matching(/more than/)).toEqual([expect.stringMatching(reason)]);
    log.lines.splice(0);
    expect(tokensOf(cookie.replace(/; SESSION=[^;]*; b=2/, ''))).toContain(values[0]);
    expect(log.matching(/more than/)).toEqual([]);
  });

  it('reads 9 KB of cookies in linear time', () => {
    const resolver = resolverOf();
    const nineKilobytes = 'SESSION='.repeat(1125) + ';SESSION=a'.repeat(1000);
    // The shortest of many rounds, the one with the least interference.
    const timeOf = (cookie: string) => {
      const request = requestWith({ cookie });
      const times = Array.from({ length: 100 }, () => {
        const start = performance.now();
        expect(resolver.resolve(request)).toEqual([]);
        return performance.now() - start;
      });
      return Math.min(...times);
    };
    timeOf(nineKilobytes);
    // Quadratic time would be 256 times as long.
    expect(timeOf(nineKilobytes.repeat(16)) / timeOf(nineKilobytes)).toBeLessThan(64);
  });

  function setCookie(cookie: SessionModuleOptions['cookie'], request = requestWith({}), method = 'send'): string {
    const response = new ServerResponse(request);
    const resolver = resolverOf(cookie);
    if (method === 'send') resolver.send(request, response, generateSessionKey().token, CLIENT);
    else resolver.expire(request, response);
    return String(response.getHeader('Set-Cookie')).replace(/=[\w-]{43};/, '=token;');
  }

  it.each([
    [{}, 'SESSION=token; Path=/; HttpOnly; SameSite=Lax'],
    [{ secure: true, sameSite: 'none' }, '__Host-SESSION=token; Path=/; HttpOnly; Secure; SameSite=None'],
    [
      { name: 'sid', path: '/app', domain: 'example.org', httpOnly: false, sameSite: 'strict' },
      'sid=token; Domain=example.org; Path=/app; SameSite=Strict',
    ],
    [{ sameSite: false }, 'SESSION=token; Path=/; HttpOnly'],
    [
      { name: '__Host-sid', secure: true, sameSite: 'none', partitioned: true },
      '__Host-sid=token; Path=/; HttpOnly; Secure; Partitioned; SameSite=None',
    ],
  ] as [SessionModuleOptions['cookie'], string][])('with %j sets %s, and expires the same', (options, expected) => {
    expect(setCookie(options)).toBe(expected);
    expect(setCookie(options, requestWith({}), 'expire')).toBe(expected.replace('=token;', '=; Max-Age=0;'));
  });

  it('with maxAge sets a cookie that outlives the browser', () => {
    expect(setCookie({ maxAge: '30d' })).toBe('SESSION=token; Max-Age=2592000; Path=/; HttpOnly; SameSite=Lax');
    expect(setCookie({ maxAge: '30d' }, requestWith({}), 'expire')).toContain('SESSION=; Max-Age=0;');
  });

  it('has the lifetime that the session asks for, else the one for remembered sessions or for all', () => {
    const [DAY, MONTH] = [86_400, 2_592_000];
    for (const maxAge of [undefined, DAY]) {
      for (const rememberMe of [undefined, MONTH]) {
        const resolver = resolverOf({
          ...(maxAge && { maxAge: `${maxAge}s` }),
          ...(rememberMe && { rememberMe: `${rememberMe}s` }),
        });
        for (const isRemembered of [false, true]) {
          const configured = isRemembered ? (rememberMe ?? maxAge) : maxAge;
          expect(resolver.maxAge({ isRemembered })).toBe(configured);
          expect(resolver.maxAge({ isRemembered, maxAge: 60 })).toBe(60);
          // 0: until the browser is closed, whatever is configured.
          expect(resolver.maxAge({ isRemembered, maxAge: 0 })).toBeUndefined();
        }
      }
    }
  });

  describe('domains', () => {
    const domains = ['example.org', 'Example.com', 'shop.example.com'];

    it.each([
      ['child.sub.example.com', 'Example.com'],
      ['www.example.com', 'Example.com'],
      ['WWW.EXAMPLE.COM', 'Example.com'],
      ['www.example.com:8080', 'Example.com'],
      ['example.com', 'Example.com'],
      ['example.org', 'example.org'],
      ['shop.example.com', 'shop.example.com'],
      ['eu.shop.example.com', 'shop.example.com'],
      ['workshop.example.com', 'Example.com'],
      ['notexample.com', undefined],
      ['example.com.evil.org', undefined],
      ['www.example.com.', undefined],
      ['com', undefined],
      ['localhost', undefined],
      ['127.0.0.1', undefined],
      ['[::1]:3000', undefined],
      ['www.example.com\nevil.example.com', undefined],
      ['www.example.com; Path=/x', undefined],
      [`${'a'.repeat(300)}.example.com`, undefined],
      ['', undefined],
    ])('on the host %j, the cookie has the domain %j', (host, domain) => {
      for (const method of ['send', 'expire']) {
        const cookie = setCookie({ domain: domains }, requestWith({ host }), method);
        expect(/Domain=([^;]*)/.exec(cookie)?.[1]).toBe(domain);
      }
    });

    it('contain the host that the platform knows', () => {
      const request = Object.assign(requestWith({ host: 'internal' }), { hostname: 'www.example.org' });
      expect(setCookie({ domain: domains }, request)).toContain('Domain=example.org;');
    });
  });

  describe('the name', () => {
    it.each<[NonNullable<SessionModuleOptions['cookie']>, string]>([
      [{}, 'SESSION'],
      [{ secure: true }, '__Host-SESSION'],
      [{ secure: true, path: '/', httpOnly: false, sameSite: 'none', partitioned: true }, '__Host-SESSION'],
      [{ secure: true, signingKeys: SIGNING_KEYS, maxAge: '1d' }, '__Host-SESSION'],
      [{ secure: 'auto' }, 'SESSION'],
      [{ secure: false }, 'SESSION'],
      [{ secure: true, path: '/app' }, 'SESSION'],
      [{ secure: true, domain: 'example.org' }, 'SESSION'],
      [{ secure: true, domain: ['example.org'] }, 'SESSION'],
      [{ secure: true, name: 'SESSION' }, 'SESSION'],
      [{ name: 'sid' }, 'sid'],
    ])('with %j is %s, and no other one is read', (options, name) => {
      const resolver = resolverOf(options);
      expect(resolver.name).toBe(name);
      expect(setCookie(options, requestWith({ host: 'localhost' })).split('=')[0]).toBe(name);
      expect(setCookie(options, requestWith({ host: 'localhost' }), 'expire').split('=')[0]).toBe(name);
      const response = new ServerResponse(requestWith());
      const { token: sent } = generateSessionKey();
      resolver.send(requestWith(), response, sent, CLIENT);
      const value = /=([^;]*)/.exec(String(response.getHeader('Set-Cookie')))![1]!;
      for (const each of ['SESSION', '__Host-SESSION', '__host-session', '__Secure-SESSION', 'sid']) {
        const found = resolver.resolve(requestWith({ cookie: `${each}=${value}` }));
        expect(found.map((one) => one.reveal())).toEqual(each === name ? [sent.reveal()] : []);
      }
    });
  });

  describe('signing keys', () => {
    const [first, second, third] = SIGNING_KEYS;
    const log = new LogRecorder();
    beforeAll(() => Logger.overrideLogger(log));
    beforeEach(() => log.lines.splice(0));

    function signedBy(signingKeys: string[], name = 'SESSION'): { token: string; cookie: string } {
      const { token: sent } = generateSessionKey();
      const response = new ServerResponse(requestWith());
      resolverOf({ signingKeys, name }).send(requestWith(), response, sent, CLIENT);
      return { token: sent.reveal(), cookie: String(response.getHeader('Set-Cookie')).split(';')[0]! };
    }

    it('sign with the first key, and any of them verifies', () => {
      const { token: sent, cookie } = signedBy([first, second]);
      expect(cookie).toMatch(/^SESSION=[\w-]{43}\.[\w-]{43}$/);
      expect(cookie).toContain(sent);
      expect(tokensOf(cookie, { signingKeys: [first] })).toEqual([sent]);
      expect(tokensOf(cookie, { signingKeys: [third, second, first] })).toEqual([sent]);
      expect(log.lines).toEqual([]);
      expect(tokensOf(cookie, { signingKeys: [second] })).toEqual([]);
      expect(tokensOf(cookie)).toEqual([]);
    });

    it.each<[string, (signed: { token: string; cookie: string }) => string, RegExp]>([
      ['has no signature', ({ token: sent }) => `SESSION=${sent}`, /is unsigned/],
      ['has an empty one', ({ token: sent }) => `SESSION=${sent}.`, /is badly signed/],
      ['has a short one', ({ cookie }) => cookie.slice(0, -2), /is badly signed/],
      ['has a long one', ({ cookie }) => `${cookie}AA`, /is badly signed/],
      ['has one that decodes to the same bytes', ({ cookie }) => `${cookie}=`, /is badly signed/],
      ['has one with something else in it', ({ cookie }) => `${cookie}!`, /is badly signed/],
      ['has one that ends in another bit', ({ cookie }) => withOtherEnd(cookie), /is badly signed/],
      ['has two', ({ cookie }) => `${cookie}${cookie.slice(cookie.indexOf('.'))}`, /is malformed/],
      ['has that of another token', ({ cookie }) => cookie.replace(/=.{43}/, `=${other}`), /is badly signed/],
      ['is malformed all the same', ({ cookie }) => cookie.replace('=', '=!'), /is malformed/],
    ])('refuse a value that %s, and one log line says so without the value', (_, forge, reason) => {
      const resolver = resolverOf({ signingKeys: [first] });
      const signed = signedBy([first]);
      for (let request = 0; request < 3; request++) {
        expect(resolver.resolve(requestWith({ cookie: forge(signed) }))).toEqual([]);
      }
      expect(log.lines).toEqual([expect.stringMatching(reason)]);
      expect(log.lines[0]).not.toContain(signed.token.slice(0, 8));
    });

    it('do not verify a signature of another cookie name', () => {
      const { cookie } = signedBy([first], 'preview');
      expect(tokensOf(cookie.replace('preview', 'SESSION'), { signingKeys: [first] })).toEqual([]);
    });

    it('are not printed', () => {
      const options = resolveSessionOptions({ cookie: { signingKeys: [first] } });
      expect(inspect(options, { depth: 9 })).not.toContain(first);
      expect(JSON.stringify(options)).not.toContain(first);
    });
  });

  it('logs once that a cookie of its name holds no token, but ignores an empty one silently', () => {
    const log = new LogRecorder();
    Logger.overrideLogger(log);
    const resolver = resolverOf();
    resolver.resolve(requestWith({ cookie: 'SESSION=' }));
    expect(log.lines).toEqual([]);
    for (const value of ['s:nonsense.1', `${token}%3D`]) resolver.resolve(requestWith({ cookie: `SESSION=${value}` }));
    expect(log.lines).toEqual([expect.stringMatching(/The cookie SESSION of a request was ignored: it is malformed/)]);
    expect(log.lines[0]).not.toMatch(/nonsense|Ab-_/);
  });

  describe('a cookie that browsers will drop', () => {
    const log = new LogRecorder();
    beforeAll(() => Logger.overrideLogger(log));
    beforeEach(() => log.lines.splice(0));

    function diagnosisOf(cookie: SessionModuleOptions['cookie'], headers: Record<string, string>): string[] {
      const resolver = resolverOf(cookie);
      for (let answer = 0; answer < 3; answer++) {
        const request = requestWith(headers);
        resolver.send(request, new ServerResponse(request), generateSessionKey().token, CLIENT);
      }
      return log.lines.splice(0);
    }

    it.each<[string, SessionModuleOptions['cookie'], Record<string, string>, RegExp]>([
      ['Secure over http', { secure: true }, { host: 'example.org' }, /with Secure on .* over http: browsers drop it/],
      ['of another domain', { domain: 'example.com' }, { host: 'example.org' }, /for the domain example.com/],
      ['of a longer domain', { domain: 'a.example.org' }, { host: 'example.org' }, /for the domain a.example.org/],
      [
        'without Secure behind a proxy that nobody trusts',
        {},
        { host: 'example.org', 'x-forwarded-proto': 'https' },
        /without Secure: .* no proxy is trusted/,
      ],
    ])('is reported once: %s', (_, cookie, headers, diagnosis) => {
      expect(diagnosisOf(cookie, headers)).toEqual([expect.stringMatching(diagnosis)]);
    });

    it.each<[string, SessionModuleOptions['cookie'], Record<string, string>]>([
      ['the defaults', {}, { host: 'example.org' }],
      ['Secure on the own machine', { secure: true }, { host: 'localhost:3000' }],
      ['Secure behind a proxy', { secure: true }, { host: 'internal', 'x-forwarded-proto': 'https' }],
      ['the domain itself', { domain: 'Example.org' }, { host: 'example.ORG:8080' }],
      ['a subdomain', { domain: 'example.org' }, { host: 'a.b.example.org' }],
    ])('is not reported for %s', (_, cookie, headers) => {
      expect(diagnosisOf(cookie, headers)).toEqual([]);
    });
  });

  it.each([
    ['the platform says so', Object.assign(requestWith({}), { protocol: 'https' }), true],
    ['the platform denies it', Object.assign(requestWith({}, { encrypted: true }), { protocol: 'http' }), false],
    ['TLS', requestWith({}, { encrypted: true }), true],
    ['a header that nobody trusts', requestWith({ 'x-forwarded-proto': 'https' }), false],
  ])('decides Secure auto by the connection: %s', (_, request, secure) => {
    Logger.overrideLogger(new LogRecorder());
    expect(/; Secure/.test(setCookie({}, request))).toBe(secure);
  });

  it('replaces no other cookie', () => {
    const request = requestWith({});
    const response = new ServerResponse(request);
    response.setHeader('Set-Cookie', 'app=1');
    resolverOf().expire(request, response);
    expect(response.getHeader('Set-Cookie')).toEqual(['app=1', expect.stringMatching(/^SESSION=; Max-Age=0/)]);
  });
});
