import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { JsonAttributeSerializer, SessionModule, type SessionOptionsFactory } from '@nest-session/core';
import { DeadlineModule, type DeadlineOptionsFactory } from '@nest-session/deadlines';
import { ExpressSessionModule, type ExpressSessionOptionsFactory } from '@nest-session/express-session';
import { SessionTelemetryModule, type SessionTelemetryOptionsFactory } from '@nest-session/opentelemetry';
import { RedisSessionModule, type RedisSessionOptionsFactory } from '@nest-session/redis';
import { BeanstalkdSessionTimer } from '@nest-session/timers/beanstalkd';
import { BullMqSessionTimer } from '@nest-session/timers/bullmq';
import { RedisDeadlineModule, type RedisDeadlineOptionsFactory } from '@nest-session/deadlines/redis';
import { RedisEventsModule, type RedisEventsOptionsFactory } from '@nest-session/redis-events';
import { SpringSessionModule, type SpringSessionOptionsFactory } from '@nest-session/spring';
import { ProviderLogoutModule, type ProviderLogoutOptionsFactory } from '@nest-session/provider-logout';
import { SessionWebSocketModule, type SessionWebSocketOptionsFactory } from '@nest-session/websockets';
import { resolveAdminOptions } from '../../packages/session-admin/src/configuration/session-admin.options.js';
import { resolveDeadlineOptions } from '../../packages/deadlines/src/deadlines/deadlines.js';
import { resolveMapDeadlineOptions } from '../../packages/deadlines/src/deadlines/map-deadline.module.js';
import { resolveSessionOptions } from '../../packages/session-core/src/configuration/session.options.js';
import {
  resolveFoundIssuer,
  resolveProviderLogoutOptions,
} from '../../packages/session-provider-logout/src/configuration/provider-logout.options.js';
import { resolveMapSessionOptions } from '../../packages/session-core/src/memory/map-session.module.js';
import { resolveExpressSessionOptions } from '../../packages/session-express/src/express-session.options.js';
import { resolveSessionTelemetryOptions } from '../../packages/session-opentelemetry/src/configuration/session-telemetry.options.js';
import { resolveRedisEventsOptions } from '../../packages/redis-events/src/configuration/redis-events.options.js';
import { resolveRedisSessionOptions } from '../../packages/session-redis/src/configuration/redis-session.options.js';
import { resolveRedisDeadlineOptions } from '../../packages/deadlines/src/redis/redis-deadline.options.js';
import { resolveSpringSessionOptions } from '../../packages/session-spring/src/spring-session.options.js';
import { resolveSessionWebSocketOptions } from '../../packages/session-websockets/src/configuration/session-web-socket.options.js';
import { section } from './support/markdown.js';
import { defaultsOf, withDefaults } from './support/option-defaults.js';
import { ROOT } from './support/compiler.js';

/** The options of all modules together: one more is a decision. */
const MOST = 77;

/** Taken so that an application can leave them as they are; docs/from-express-session.md says what each amounts to. */
const OF_EXPRESS_SESSION = [
  'secret',
  'name',
  'unset',
  'saveUninitialized',
  'cookie',
  'resave',
  'rolling',
  'proxy',
  'genid',
  'store',
];

// Of express-session, which the module answers, and of `listen()`, which are no module's.
const OF_OTHERS = ['from-express-session.md', 'keyspace-notifications.md'];

class Settings
  implements
    SessionOptionsFactory,
    RedisSessionOptionsFactory,
    SessionWebSocketOptionsFactory,
    SessionTelemetryOptionsFactory,
    ExpressSessionOptionsFactory,
    DeadlineOptionsFactory,
    RedisDeadlineOptionsFactory,
    RedisEventsOptionsFactory,
    SpringSessionOptionsFactory,
    ProviderLogoutOptionsFactory
{
  createSessionOptions() {
    return {};
  }
  createRedisSessionOptions() {
    return {};
  }
  createSessionWebSocketOptions() {
    return {};
  }
  createSessionTelemetryOptions() {
    return {};
  }
  createExpressSessionOptions() {
    return {};
  }
  createDeadlineOptions() {
    return {};
  }
  createRedisDeadlineOptions() {
    return {};
  }
  createRedisEventsOptions() {
    return {};
  }
  createSpringSessionOptions() {
    return { mode: 'read' as const };
  }
  createProviderLogoutOptions() {
    return { issuers: [] };
  }
}

const PAGE = join(ROOT, 'docs/options.md');

let optionsDoc: string;

beforeAll(async () => {
  optionsDoc = await readFile(PAGE, 'utf8');
});

describe('the options', () => {
  const [ofSession, ofRedis, ofMap] = ['SessionModule', 'RedisSessionModule', 'MapSessionModule'];
  const [ofSockets, ofExpress] = ['SessionWebSocketModule', 'ExpressSessionModule'];
  const [ofTelemetry, ofDeadlines, ofAdmin] = ['SessionTelemetryModule', 'DeadlineModule', 'SessionAdminModule'];

  it.each([
    { module: ofSession, resolve: resolveSessionOptions },
    { module: ofRedis, resolve: resolveRedisSessionOptions },
    { module: ofMap, resolve: resolveMapSessionOptions, shared: ['serializer'] },
    { module: ofSockets, resolve: resolveSessionWebSocketOptions },
    { module: ofTelemetry, resolve: resolveSessionTelemetryOptions },
    { module: ofDeadlines, resolve: resolveDeadlineOptions },
  ])('are all options of $module, with their defaults', ({ module, resolve, shared = [] }) => {
    const table = optionTable(module);
    const known = knownOptions(resolve, [...table.keys()]);
    expect([...table.keys(), ...shared].toSorted()).toEqual(known.toSorted());
    const options: Record<string, any> = {};
    for (const [option, cell] of table) {
      const value = literal(cell);
      // It says what happens at a number that has no default.
      if (value === undefined || option === 'maxSessions.whenReached') continue;
      const names = option.split('.');
      const last = names.pop()!;
      const inner = names.reduce<Record<string, any>>((outer, name) => (outer[name] ??= {}), options);
      inner[last] = value;
    }
    expect(resolve(options)).toEqual(resolve({}));
  });

  it('have the defaults that the modules give them: `WRITE=1 npm test -- options.spec` prints them', async () => {
    const session = resolveSessionOptions();
    const { connection, expirations } = resolveRedisSessionOptions();
    const admin = { path: 'admin', guards: 'none' };
    const printed = withDefaults(optionsDoc, {
      [ofSession]: defaultsOf(() => resolveSessionOptions({ maxSessions: { perPrincipal: 1 } }), {
        'cookie.name': session.cookie.name,
        'maxSessions.perPrincipal': undefined,
        devices: session.devices !== undefined,
        deviceBound: session.deviceBound !== undefined,
      }),
      [ofRedis]: defaultsOf(resolveRedisSessionOptions, { ...connection, expirations: expirations.store }),
      [ofSockets]: defaultsOf(resolveSessionWebSocketOptions),
      [ofTelemetry]: defaultsOf(resolveSessionTelemetryOptions),
      [ofAdmin]: defaultsOf(() => resolveAdminOptions(admin), { access: resolveAdminOptions(admin).access({}) }),
      [ofExpress]: defaultsOf(() => resolveExpressSessionOptions({}, session.cookie)),
      [ofDeadlines]: defaultsOf(resolveDeadlineOptions),
      BeanstalkdSessionTimer: defaultsOf(() => new BeanstalkdSessionTimer()),
      BullMqSessionTimer: defaultsOf(() => new BullMqSessionTimer({ connection: {} })),
    });
    if (process.env['WRITE']) await writeFile(PAGE, printed);
    else expect(optionsDoc).toBe(printed);
  });

  it('of SessionAdminModule are those of the table', () => {
    const known = knownOptions(resolveAdminOptions, []);
    expect([...optionTable(ofAdmin).keys()]).toEqual(known);
    const { access, by, values, data } = resolveAdminOptions({ path: 'admin', guards: 'none' });
    expect({ access: access({}), by, values, data }).toEqual({ access: 'all' });
    expect(optionTable(ofAdmin).get('access')).toBe("`'all'`");
  });

  it('of ProviderLogoutModule are those of the table, with their defaults', () => {
    const table = optionTable('ProviderLogoutModule');
    const good = { issuer: 'https://login.example.com', audience: 'shop' };
    const ofIssuers = knownOptions((options) => resolveFoundIssuer({ ...good, ...options }), []);
    const known = [
      ...knownOptions((options) => resolveProviderLogoutOptions({ issuers: [], ...options }), []),
      ...ofIssuers.map((name) => `issuers.${name}`),
    ];
    expect([...table.keys()].toSorted()).toEqual(known.toSorted());
    const { path } = resolveProviderLogoutOptions({ issuers: [] });
    const { accepts, algorithms, expiry } = resolveFoundIssuer(good);
    for (const [name, value] of Object.entries({ path, accepts, algorithms, expiry }))
      expect(literal(table.get(name) ?? table.get(`issuers.${name}`)!)).toEqual(value);
  });

  it('of ExpressSessionModule and of timers are those of the tables, beside those of express-session', () => {
    const cookie = resolveSessionOptions().cookie;
    const old = knownOptions((options) => resolveExpressSessionOptions(options, cookie), []);
    expect(old.filter((name) => !OF_EXPRESS_SESSION.includes(name))).toEqual(['prefix', 'principal']);
    expect([...optionTable(ofExpress).keys()]).toEqual(['secret', 'name', 'prefix', 'principal']);
    const timers = {
      BeanstalkdSessionTimer: knownOptions((options) => new BeanstalkdSessionTimer(options), []),
      BullMqSessionTimer: knownOptions((options) => new BullMqSessionTimer({ connection: {}, ...options }), []),
    };
    const rows = Object.entries(timers).flatMap(([timer, names]) => [timer, ...names]);
    expect([...namesAndDefaults(section(optionsDoc, 'Timers')).keys()]).toEqual(rows);
  });

  it.each([
    { module: 'RedisDeadlineModule', resolve: resolveRedisDeadlineOptions },
    { module: 'RedisEventsModule', resolve: resolveRedisEventsOptions },
  ])(
    'of $module are those of RedisSessionModule that its section names, with the defaults that it names',
    ({ module, resolve }) => {
      const text = sectionOf(module);
      const [sentence = ''] = /^The module takes [\s\S]*?`RedisSessionModule`/m.exec(text) ?? [];
      const named = [...sentence.matchAll(/`([\w.]+)`/g)].map(([, name]) => name!.split('.')[0]!);
      const known = knownOptions(resolve, []);
      expect([...new Set([...named, 'namespace'])].filter((name) => name !== ofRedis).toSorted()).toEqual(
        known.toSorted(),
      );
      const [own, ofSessions] = [resolve(), resolveRedisSessionOptions()];
      const defaults = [...text.matchAll(/`([\w.]+)` is `'(\w+:?\w*)'`/g)].map(([, name, value]) => [name, value]);
      expect(defaults).toEqual([
        ['namespace', own.namespace],
        ['events.retention', `${own.events.retention / 86_400_000}d`],
      ]);
      const { retention, ...others } = ofSessions.events;
      expect(own.events).toEqual({ ...others, retention: expect.any(Number) });
      expect(retention).not.toBe(own.events.retention);
      expect(own.commandTimeout).toBe(ofSessions.commandTimeout);
    },
  );

  it('of MapDeadlineModule are one', () => {
    expect(knownOptions(resolveMapDeadlineOptions, [])).toEqual(['serializer']);
  });

  it('of SpringSessionModule are those of RedisSessionModule that its section names, in each mode, with their defaults', () => {
    const text = sectionOf('SpringSessionModule');
    const [sentence = ''] = /^The module takes `url`[\s\S]*?`RedisSessionModule`/m.exec(text) ?? [];
    const [ofBoth, ofShared] = sentence.split('also').map((part) => [...part.matchAll(/`(\w+)(?:\.\w+)?`/g)]);
    const names = (found = [] as RegExpMatchArray[]) =>
      found.map(([, name]) => name!).filter((name) => name !== ofRedis);
    const known = (mode: 'read' | 'shared') =>
      knownOptions((options) => resolveSpringSessionOptions({ mode, ...options }), []).toSorted();
    const expected = ['mode', 'namespace', 'ownClasses', ...names(ofBoth)];
    expect(known('read')).toEqual(expected.toSorted());
    expect(known('shared')).toEqual([...expected, ...names(ofShared)].toSorted());
    const [read, shared] = [
      resolveSpringSessionOptions({ mode: 'read' }),
      resolveSpringSessionOptions({ mode: 'shared' }),
    ];
    const { cron, batchSize, events, replicas, commandTimeout, requireAtStart } = resolveRedisSessionOptions();
    expect(shared).toMatchObject({ cron, batchSize, events, replicas, commandTimeout, requireAtStart });
    expect(read).toMatchObject({ commandTimeout, requireAtStart, namespace: shared.springNamespace });
    expect(text).toContain(`by default \`'${shared.springNamespace}'\``);
  });

  it('of a class for useClass come from methods that have the names of the modules', () => {
    const modules = [SessionModule, RedisSessionModule, SessionWebSocketModule, SessionTelemetryModule];
    const others = [ExpressSessionModule, DeadlineModule, RedisDeadlineModule, RedisEventsModule, SpringSessionModule];
    const all = [...modules, ...others, ProviderLogoutModule].map(
      ({ name }) => `create${name.replace(/Module$/, '')}Options`,
    );
    // The compiler checks that these are the methods that the modules call.
    expect(Object.getOwnPropertyNames(Settings.prototype)).toEqual(['constructor', ...all]);
    const named = [...optionsDoc.matchAll(/`(create\w+)\(\)` for\s+`(\w+)`/g)];
    expect(named.map(([, method, module]) => [method, module])).toEqual([
      ['createSessionOptions', ofSession],
      ['createRedisSessionOptions', ofRedis],
    ]);
  });

  it('are no more than a maintainer can defend for years', () => {
    const ofModules = [ofSession, ofRedis, ofMap, ofSockets, ofTelemetry, ofExpress, ofDeadlines, ofAdmin].flatMap(
      (each) => [...optionTable(each).keys()],
    );
    expect(ofModules.length).toBeLessThanOrEqual(MOST);
  });

  it('are each documented in one table, and on one page', async () => {
    const names = [ofSession, ofRedis, ofMap, ofSockets, ofTelemetry, ofDeadlines, ofAdmin].flatMap((each) =>
      rowsOf(sectionOf(each)),
    );
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
    const pages = (await readdir(join(ROOT, 'docs'))).filter((name) => name.endsWith('.md'));
    const others = pages.filter((page) => !['options.md', ...OF_OTHERS].includes(page));
    for (const page of others) {
      const text = await readFile(join(ROOT, 'docs', page), 'utf8');
      const tables = [...text.matchAll(/^\| option .*\n(?:\|.*\n)+/gm)].flatMap(([table]) => rowsOf(table));
      const last = names.map((name) => name.split('.').at(-1));
      expect({ page, twice: tables.filter((name) => last.includes(name)) }).toEqual({ page, twice: [] });
    }
  });

  it('have no default where the table has a dash', () => {
    const { cookie, maxSessions, rotateEvery, exclude, mayCreate } = resolveSessionOptions();
    const { domain, maxAge, rememberMe, signingKeys } = cookie;
    const unset = { domain, maxAge, rememberMe, signingKeys: signingKeys[0] };
    const others = { 'maxSessions.perPrincipal': maxSessions?.perPrincipal, rotateEvery, exclude, mayCreate };
    expect(Object.values({ ...unset, ...others })).toEqual(Array(8).fill(undefined));
    expect(dashes(ofSession)).toEqual([...Object.keys(unset).map((name) => `cookie.${name}`), ...Object.keys(others)]);
    expect(resolveRedisSessionOptions().connection).not.toHaveProperty('client');
    expect(resolveRedisSessionOptions().connection).toHaveProperty('tls', undefined);
    const servers = ['sentinels', 'name', 'cluster.nodes', 'username', 'password'];
    expect(resolveRedisSessionOptions().connection).toEqual({ url: expect.any(String), tls: undefined });
    expect(dashes(ofRedis)).toEqual(['tls', ...servers, 'client']);
    expect(dashes(ofSockets)).toEqual(['origins']);
    expect(resolveSessionWebSocketOptions().origins).toEqual([]);
  });

  it('have the computed defaults of touchInterval, anonymousTimeout, maxSessionSize, whenReached and serializer', () => {
    expect(resolveSessionOptions({ timeout: '10m' }).anonymousTimeout).toBe(10 * 60);
    expect(resolveSessionOptions({ maxAttributeSize: 1000 }).maxSessionSize).toBe(4000);
    expect(resolveSessionOptions({ timeout: '10m' }).touchInterval).toBe((10 * 60_000) / 30);
    expect(resolveSessionOptions({ maxSessions: { perPrincipal: 1 } }).maxSessions?.whenReached).toBe('end-oldest');
    expect(optionTable(ofRedis).get('serializer')).toBe('JSON');
    expect(resolveSessionOptions().serializer).toMatchObject({
      chosen: undefined,
      shownName: JsonAttributeSerializer.name,
    });
    expect(resolveRedisSessionOptions().serializer).toBeUndefined();
  });

  function dashes(module: string): string[] {
    return [...optionTable(module)].filter(([, cell]) => cell === '-').map(([name]) => name);
  }

  function sectionOf(module: string): string {
    return section(optionsDoc, `\`${module}.forRoot()\``);
  }

  /** A module's table in docs/options.md. */
  function optionTable(module: string): Map<string, string> {
    return namesAndDefaults(sectionOf(module));
  }
});

/** The names in the first column of a table, as often as they are there. */
function rowsOf(table: string): string[] {
  return [...table.matchAll(/^\| `([\w.]+)` *\|/gm)].map(([, name]) => name!);
}

/** The first two columns of a table. */
function namesAndDefaults(table: string): Map<string, string> {
  return new Map([...table.matchAll(/^\| `([\w.]+)` *\| (.+?) *\|/gm)].map(([, name, cell]) => [name!, cell!]));
}

/** The option names in the errors for unknown options; nested options as in the table. */
function knownOptions(resolve: (options: any) => unknown, inTable: readonly string[]): string[] {
  const isSection = (name: string) => inTable.some((other) => other.startsWith(`${name}.`));
  const namesIn = (path: readonly string[]): string[] => {
    const unknown: object = { '????????????????????': 1 };
    try {
      resolve(path.reduceRight((inner, name) => ({ [name]: inner }), unknown));
    } catch (error) {
      return /known are (.*)\./.exec(String(error))?.[1]?.split(', ') ?? [];
    }
    return [];
  };
  const known = (path: readonly string[]): string[] =>
    namesIn(path).flatMap((name) => {
      const option = [...path, name].join('.');
      return isSection(option) ? known([...path, name]) : [option];
    });
  return known([]);
}

/** The value of a cell such as `'30m'` or `100`, undefined when it has none. */
function literal(cell: string): unknown {
  const [, code] = /^`(.+)`$/.exec(cell) ?? [];
  return code === undefined ? undefined : JSON.parse(code.replaceAll("'", '"'));
}
