import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { HeaderSessionIdResolver } from '../../src/resolvers/header-session-id.resolver.js';
import { InvalidSessionOptionsError } from '../../src/errors/session.errors.js';
import { RandomSessionTokenGenerator, type SessionTokenGenerator } from '../../src/session/session-token.js';
import { resolveSessionOptions, type SessionModuleOptions } from '../../src/configuration/session.options.js';

function problemsOf(options: unknown): readonly string[] {
  try {
    resolveSessionOptions(options as object);
  } catch (error) {
    if (error instanceof InvalidSessionOptionsError) return error.problems;
    throw error;
  }
  return [];
}

function generatorOf(generate: () => string): SessionTokenGenerator {
  return Object.assign(new RandomSessionTokenGenerator(), { generate });
}

describe('resolveSessionOptions', () => {
  it('has a default for every option', () => {
    const options = resolveSessionOptions();
    expect(options).toMatchObject({
      timeout: 1800,
      absoluteTimeout: -1,
      devices: undefined,
      touchInterval: 60_000,
      exclude: undefined,
    });
    expect(Object.isFrozen(options)).toBe(true);
    expect(resolveSessionOptions({})).toEqual(options);
  });

  it.each<[object, object]>([
    [{ timeout: '30s' }, { timeout: 30, touchInterval: 1000 }],
    [{ timeout: '1s' }, { timeout: 1, touchInterval: 33 }],
    [{ timeout: '12h' }, { timeout: 43_200, touchInterval: 60_000 }],
    [{ timeout: 'never' }, { timeout: -1, touchInterval: 60_000 }],
    [{ absoluteTimeout: '12h' }, { timeout: 1800, absoluteTimeout: 43_200 }],
    [
      { timeout: 'never', absoluteTimeout: '1d' },
      { timeout: -1, absoluteTimeout: 86_400 },
    ],
    [
      { timeout: '2s', touchInterval: 0 },
      { timeout: 2, touchInterval: 0 },
    ],
    [{ timeout: undefined }, { timeout: 1800 }],
    [{}, { anonymousTimeout: 1800, mayCreate: undefined }],
    [{ timeout: '8h' }, { anonymousTimeout: 28_800 }],
    [{ timeout: 'never' }, { anonymousTimeout: -1 }],
    [
      { timeout: '30m', anonymousTimeout: '30d' },
      { timeout: 1800, anonymousTimeout: 2_592_000 },
    ],
    [
      { timeout: '8h', security: 'strict' },
      { timeout: 28_800, anonymousTimeout: 600 },
    ],
    [{ timeout: '10m', security: 'strict' }, { anonymousTimeout: 600 }],
    [
      { timeout: '8h', anonymousTimeout: '1h', security: 'strict' },
      { timeout: 28_800, anonymousTimeout: 3600 },
    ],
    [{}, { maxAttributes: 256, maxAttributeNameSize: 256, maxAttributeSize: 65_536, maxSessionSize: 262_144 }],
    [{ maxAttributeSize: 1_000_000 }, { maxSessionSize: 4_000_000 }],
    [{ maxAttributeSize: 2 ** 29 }, { maxSessionSize: 2 ** 29 }],
    [{ devices: false }, { devices: undefined }],
    [{ devices: true }, { devices: { address: 'network', userAgent: true } }],
    [{ devices: {} }, { devices: { address: 'network', userAgent: true } }],
    [{ devices: { address: 'none', userAgent: false } }, { devices: { address: 'none', userAgent: false } }],
  ])('resolves %p', (given, resolved) => expect(resolveSessionOptions(given)).toMatchObject(resolved));

  it('takes each two options together, and changes what neither of them says', () => {
    jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const each = [
      { timeout: 'never' },
      { timeout: '10m' },
      { anonymousTimeout: 'never' },
      { anonymousTimeout: '5m' },
      { absoluteTimeout: 'never' },
      { absoluteTimeout: '12h' },
      { touchInterval: '5s' },
      { touchInterval: 0 },
      { cookie: { maxAge: '1d' } },
      { cookie: { rememberMe: '30d' } },
      { cookie: { maxAge: '1d', rememberMe: '30d', secure: true } },
      { multipleSessions: true },
      { sessionIds: 'plain' },
      { visitorAttributes: ['captcha'] },
      { maxSessions: { perPrincipal: 3, whenReached: 'refuse' } },
      { maxAttributeSize: 100 },
      { maxSessionSize: 50 },
      { devices: true },
    ] as const satisfies SessionModuleOptions[];
    // Others follow from these: the defaults of the other timeouts, and of what may be stored.
    const says = (given: SessionModuleOptions) => {
      const { ids: _, securityEvents: __, sessionIdResolver: ___, ...plain } = resolveSessionOptions(given);
      const names = Object.keys(given) as (keyof typeof plain)[];
      return Object.fromEntries(names.map((name) => [name, plain[name]]));
    };
    for (const one of each) {
      for (const other of each) {
        if (Object.keys(one)[0] === Object.keys(other)[0]) continue;
        expect(says({ ...one, ...other })).toEqual({ ...says(one), ...says(other) });
      }
    }
    jest.restoreAllMocks();
  });

  it.each<[unknown, string]>([
    [{ timeout: 1800 }, "Option `timeout` is the bare number 1800: name its unit, such as '1800s' or '1800ms'."],
    [{ timeout: '1800' }, "Option `timeout` is the bare number \"1800\": name its unit, such as '1800s' or '1800ms'."],
    [{ timeout: '999ms' }, 'Option `timeout` is 999ms: it must be at least 1s.'],
    [{ timeout: 0 }, 'Option `timeout` is 0: it must be at least 1s.'],
    [{ timeout: '1500ms' }, 'Option `timeout` must be a number of whole seconds.'],
    [{ timeout: '30000d' }, 'Option `timeout` is 30000d: it must be at most 2147483647s.'],
    [{ absoluteTimeout: 0 }, 'Option `absoluteTimeout` is 0: it must be at least 1s.'],
    [{ absoluteTimeout: '1.0005s' }, 'Option `absoluteTimeout` must be a number of whole seconds.'],
    [
      { timeout: -1 },
      "Option `timeout` is -1, which is not a duration: write a number and its unit, such as '30m' (units: ms, s, m, h, d), or 'never'.",
    ],
    [{ touchInterval: 'never' }, 'Option `touchInterval` is not a duration'],
    [
      { timeout: '1m', touchInterval: '1m' },
      'Option `touchInterval` must be shorter than `timeout`: sessions in use would expire.',
    ],
    [
      { multipleSessions: true, sessionIdResolver: HeaderSessionIdResolver.xAuthToken() },
      'Option `multipleSessions` needs cookies of its own: remove it, or `sessionIdResolver`.',
    ],
    [{ sessionIds: 'raw' }, 'Option `sessionIds` must be one of "hashed", "plain".'],
    [
      { sessionTokenGenerator: () => 'a'.repeat(43) },
      'Option `sessionTokenGenerator` must be a SessionTokenGenerator.',
    ],
    [
      { sessionTokenGenerator: generatorOf(() => 'too-short') },
      'The SessionTokenGenerator returned something other than a string of 22 to 128 letters, digits, "-" and "_".',
    ],
    [
      { sessionTokenGenerator: generatorOf(() => 'a'.repeat(43)) },
      'The SessionTokenGenerator returned the same token twice: each session needs one that cannot be guessed.',
    ],
    [
      {
        sessionTokenGenerator: generatorOf(() => {
          throw new Error('no entropy');
        }),
      },
      'Option `sessionTokenGenerator` cannot be used: no entropy.',
    ],
    [{ anonymousTimeout: 600 }, 'Option `anonymousTimeout` is the bare number 600'],
    [{ anonymousTimeout: '1500ms' }, 'Option `anonymousTimeout` must be a number of whole seconds.'],
    [{ anonymousTimeout: '0s' }, 'Option `anonymousTimeout` is 0s: it must be at least 1s'],
    [{ maxAttributes: 0 }, 'Option `maxAttributes` must be a whole number from 1 to 10000.'],
    [{ maxAttributes: 10_001 }, 'Option `maxAttributes` must be a whole number from 1 to 10000.'],
    [{ maxSessionSize: Infinity }, 'Option `maxSessionSize` must be a whole number from 1 to 536870912.'],
    [{ mayCreate: true }, 'Option `mayCreate` must be a function that takes the request.'],
    [{ maxAttributeSize: '5 MB' }, 'Option `maxAttributeSize` must be a whole number from 1 to 536870912.'],
    ...[
      'shop.test',
      'https://shop.test/',
      'https://*.shop.test',
      'ftp://shop.test',
      'wss://shop.test',
      'null',
      'https://',
      'file://',
      'capacitor://localhost/',
      'app://*',
      'data:,',
      'about:blank',
      5,
    ].map((origin): [unknown, string] => [
      { csrf: { trustedOrigins: [origin] } },
      "Option `csrf.trustedOrigins` must be a list of origins, such as 'https://www.example.com', without a slash or a path behind the host.",
    ]),
    [{ devices: 'yes' }, 'Option `devices` must be true or false, or an object.'],
    [{ devices: [] }, 'Option `devices` must be true or false, or an object.'],
    [{ devices: { address: 'ip' } }, 'Option `devices.address` must be one of "network", "full", "none".'],
    [{ devices: { addressOf: 'ip' } }, 'Option `devices.addressOf` must be a function that takes the request.'],
    [
      { devices: { address: 'none', addressOf: () => '192.0.2.1' } },
      "Option `devices.addressOf` has no effect with `devices.address` 'none': remove one of them.",
    ],
    [{ devices: { useragent: true } }, 'Unknown option `devices.useragent`: known are'],
    [{ exclude: '/static' }, 'Option `exclude` must be a function that takes the request'],
    [{ exclude: async () => false }, 'and returns at once, not an async one.'],
    [{ timout: '30m' }, 'Unknown option `timout`: known are'],
    [
      { secret: 'x' },
      'Unknown option `secret`: it belongs to ExpressSessionModule.forRoot() of @nest-session/express-session.',
    ],
    [{ cookie: { samesite: 'lax' } }, 'Unknown option `cookie.samesite`: known are'],
    [
      { somethingElse: 1 },
      'Unknown option `somethingElse`: known are security, timeout, anonymousTimeout, absoluteTimeout, touchInterval, cookie, sessionIdResolver, multipleSessions, sessionIds, sessionTokenGenerator, visitorAttributes, maxSessions, maxAttributes, maxAttributeSize, maxSessionSize, csrf, deviceBound, indexes, devices, rotateEvery, exclude, mayCreate.',
    ],
    [{ maxSessions: { perPrincipal: 1 }, devices: {}, else: 1 }, 'visitorAttributes, maxSessions, maxAttributes'],
    [{ devices: {}, else: 1 }, 'csrf, deviceBound, indexes, devices, rotateEvery, exclude'],
    [{ deviceBound: 'yes' }, 'Option `deviceBound` must be true or false, or an object.'],
    [{ deviceBound: { mod: 'report' } }, 'Unknown option `deviceBound.mod`'],
    [{ deviceBound: { mode: 'on' } }, 'Option `deviceBound.mode` must be one of "report", "enforce".'],
    [{ deviceBound: { lifetime: '4m' } }, 'Option `deviceBound.lifetime`'],
    [{ deviceBound: { lifetime: '61m' } }, 'Option `deviceBound.lifetime`'],
    [{ deviceBound: { paths: 'session' } }, 'Option `deviceBound.paths` must be a path such as `/session/device`'],
    [{ deviceBound: { paths: '/session/' } }, 'Option `deviceBound.paths` must be a path such as `/session/device`'],
    [{ deviceBound: { paths: '/a";x="' } }, 'Option `deviceBound.paths` must be a path such as `/session/device`'],
    [{ deviceBound: { exclude: '/assets' } }, 'Option `deviceBound.exclude` must be a list of paths'],
    [{ deviceBound: { exclude: ['assets'] } }, 'Option `deviceBound.exclude` must be a list of paths'],
    ...['*', 'IDP.example', 'https://idp.example', 'idp.example:443', 'idp.example/', 'example', '*.', ''].map(
      (host): [object, string] => [
        { deviceBound: { refreshFrom: ['login.example', host] } },
        'Option `deviceBound.refreshFrom` must be a list of hosts in lower case',
      ],
    ),
    [{ rotateEvery: '30s' }, 'Option `rotateEvery` is 30s: it must be at least 1m.'],
    [{ visitorAttributes: 'captcha' }, 'Option `visitorAttributes` must be a list of names of attributes'],
    [{ visitorAttributes: [''] }, 'Option `visitorAttributes` must be a list of names of attributes'],
    [{ security: 'high' }, 'Option `security` must be'],
    [{ maxSessions: 5 }, 'Option `maxSessions` must be an object such as { perPrincipal: 5 }.'],
    [{ maxSessions: {} }, 'Option `maxSessions.perPrincipal` must be a whole number from 1 to 1000.'],
    [{ maxSessions: { perPrincipal: 0 } }, 'Option `maxSessions.perPrincipal` must be a whole number from 1 to 1000.'],
    [
      { maxSessions: { perPrincipal: 1, whenReached: 'wait' } },
      'Option `maxSessions.whenReached` must be one of "end-oldest", "refuse".',
    ],
    [{ maxSessions: { perPrincipal: 1, perprincipal: 1 } }, 'Unknown option `maxSessions.perprincipal`: known are'],
    [{ cookie: 'SESSION' }, 'Option `cookie` must be an object.'],
    [null, 'The argument must be an object.'],
    [[], 'The argument must be an object.'],
  ])('refuses %p', (given, problem) => {
    expect(problemsOf(given)).toHaveLength(1);
    expect(problemsOf(given)[0]).toContain(problem);
  });

  it('warns of remembered sessions that the absolute timeout ends', () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    try {
      resolveSessionOptions({ absoluteTimeout: '30d', cookie: { rememberMe: '30d' } });
      resolveSessionOptions({ cookie: { rememberMe: '30d' } });
      expect(warn).not.toHaveBeenCalled();
      resolveSessionOptions({ absoluteTimeout: '8h', cookie: { rememberMe: '30d' } });
      expect(warn.mock.calls).toEqual([
        [expect.stringMatching(/`cookie.rememberMe` outlives `absoluteTimeout`.* 28800s /)],
      ]);
    } finally {
      warn.mockRestore();
    }
  });

  it('warns of an idle timeout that the absolute timeout leaves without effect', () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    try {
      resolveSessionOptions({ timeout: '12h', absoluteTimeout: '12h' });
      resolveSessionOptions({ timeout: 'never', absoluteTimeout: '12h' });
      resolveSessionOptions({ timeout: '30d' });
      expect(warn).not.toHaveBeenCalled();
      resolveSessionOptions({ timeout: '12h', absoluteTimeout: '8h', security: 'strict' });
      expect(warn.mock.calls).toEqual([
        [expect.stringMatching(/^Option `timeout` outlives `absoluteTimeout`: sessions end after 28800s all the same/)],
      ]);
    } finally {
      warn.mockRestore();
    }
  });

  it('reports all problems at once', () => {
    const given = { timeout: 30, touchinterval: '1m', cookie: { name: 'a b', secure: 'yes', unknownName: 1 } };
    expect(problemsOf(given)).toEqual([
      expect.stringContaining('`timeout`'),
      expect.stringContaining('`cookie.name`'),
      expect.stringContaining('`cookie.secure`'),
      expect.stringContaining('`cookie.unknownName`'),
      expect.stringContaining('`touchinterval`: known are'),
    ]);
    expect(() => resolveSessionOptions(given as object)).toThrow(/^SessionModule: Option `timeout` .* Unknown option /);
  });
});
