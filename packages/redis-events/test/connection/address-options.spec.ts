import { Logger } from '@nestjs/common';
import { InvalidSessionOptionsError, SessionStoreError } from '@nest-session/core';
import type { RedisSessionModuleOptions } from '@nest-session/redis';
import { LeakGuard, Sentinel } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { Cluster, type ClusterNode, Redis } from 'ioredis';
import { resolveRedisSessionOptions } from '../../../session-redis/src/configuration/redis-session.options.js';
import { resolveRedisDeadlineOptions } from '../../../deadlines/src/redis/redis-deadline.options.js';
import { closeConnections, createConnections } from '../../src/connection/redis-connections.js';
import { RequestConnection } from '../../src/connection/request.connection.js';
import { shownAddress } from '../../src/connection/shown-server.js';
import { CertificateAuthority } from '../../../session-redis/test/support/tls.redis.js';
import { TlsCluster } from '../../../session-redis/test/support/tls.cluster.js';
import { TlsSentinel } from '../../../session-redis/test/support/tls.sentinel.js';

LeakGuard.install();

const NODES = [{ host: 'localhost', port: 6379 }];

function problemsOf(options: object): readonly string[] {
  try {
    resolveRedisSessionOptions(options);
    return [];
  } catch (error) {
    return (error as InvalidSessionOptionsError).problems;
  }
}

it.each<[string, object, string[]]>([
  [
    'a url beside a client',
    { url: 'redis://localhost', client: new Redis({ lazyConnect: true }) },
    ['Give either `url` or `client`, not both.'],
  ],
  [
    'a url beside Sentinels and a Cluster',
    { url: 'redis://localhost', sentinels: NODES, name: 'main', cluster: { nodes: NODES } },
    ['Give either `url` or `sentinels` or `cluster`, not both.'],
  ],
  [
    'a Cluster without nodes and with one partition',
    { cluster: { nodes: [], seeds: [] }, partitions: 1 },
    [
      'Option `cluster.nodes` must be a list of `{ host, port }`, at least one.',
      'Unknown option `cluster.seeds`: known are nodes.',
      'Option `partitions` must be a whole number from 2 to 1024.',
    ],
  ],
  [
    'a Cluster without the option `nodes`',
    { cluster: {} },
    ['Option `cluster.nodes` must be a list of `{ host, port }`, at least one.'],
  ],
  [
    'Sentinels without a name and with another form',
    { sentinels: ['localhost:26379'] },
    [
      'Option `sentinels` must be a list of `{ host, port }`, at least one.',
      'Option `name` is missing: the name of the master.',
    ],
  ],
  [
    'the name of a master beside a Cluster',
    { cluster: { nodes: NODES }, name: 'main' },
    ['Option `name` belongs to `sentinels`.'],
  ],
  [
    'a user beside a url',
    { username: 'app' },
    ['Options `username` and `password` belong to `sentinels` and `cluster`: a `url` has them.'],
  ],
  [
    'an address of ioredis',
    { host: 'localhost', port: 6379 },
    [
      'Unknown option `host`: write it into `url`, as in redis://user:password@host:6379/0.',
      'Unknown option `port`: write it into `url`, as in redis://user:password@host:6379/0.',
    ],
  ],
  [
    'a client of a Cluster with a key prefix',
    { client: new Cluster(['redis://localhost'], { lazyConnect: true, keyPrefix: 'app:' }) },
    ['Option `client` has a `keyPrefix`, which scripts do not see: remove it and use option `namespace`.'],
  ],
  [
    'a url with a key prefix',
    { url: 'redis://localhost/0?family=6&keyPrefix=app:' },
    ['Option `url` has a `keyPrefix`, which scripts do not see: remove it and use option `namespace`.'],
  ],
])('%s is refused, with all problems', (_, options, problems) => {
  expect(problemsOf(options)).toEqual(problems);
});

describe('a url that ioredis would read as another Redis is refused, and no part of it is shown', () => {
  const unreadable =
    'Option `url` cannot be read: percent-encode the user and the password, as `encodeURIComponent()` does, and check ' +
    'the host and the port.';
  const otherDatabase = 'Option `url` must end with the number of a database, such as /0, or have no path.';
  const otherProtocol = 'Option `url` must be a redis:// or rediss:// url.';

  const socket =
    'Option `url` is the path of a Unix socket: give a client of ioredis with that `path` in place of the url.';

  it.each([
    ['redis://localhost:6379/shop', otherDatabase],
    ['redis://localhost:6379/1.5', otherDatabase],
    ['redis://localhost:6379/-1', otherDatabase],
    ['redis://localhost:6379/1/2', otherDatabase],
    ['redis://localhost:6379/?db=shop', otherDatabase],
    ['redis://:p@ss/w#rd@localhost:6379', unreadable],
    ['redis://:p@ss/word@localhost:6379', unreadable],
    ['redis://:p@ss?word@localhost:6379', unreadable],
    ['redis://:p@ss#word@localhost:6379', unreadable],
    ['redis://app:12/34@localhost:6379', unreadable],
    ['redis://:a/b@localhost:6379', unreadable],
    ['redis://:a#b@localhost:6379', unreadable],
    ['redis://localhost:6379?password=a#b', unreadable],
    ['redis://:100%@localhost', unreadable],
    ['redis://100%:word@localhost', unreadable],
    ['redis://localhost:99999', unreadable],
    ['redis://:6379', unreadable],
    ['localhost:6379', otherProtocol],
    ['redis:localhost', otherProtocol],
    ['http://localhost', otherProtocol],
    ['', otherProtocol],
    ['/run/redis.sock', socket],
    ['redis:///run/redis.sock', socket],
    ['unix:///run/redis.sock', socket],
  ])('%s', (url, problem) => {
    expect(problemsOf({ url })).toEqual([problem]);
  });

  it.each(['redis://localhost/', 'rediss://app:a%40b@[::1]:6380/15', 'redis://:p@ss@localhost', 'redis://h?db=2'])(
    'but not %s',
    (url) => {
      expect(problemsOf({ url })).toEqual([]);
    },
  );
});

it.each<[string, RedisSessionModuleOptions, number]>([
  ['one server', {}, 1],
  ['Sentinels', { sentinels: NODES, name: 'main' }, 1],
  ['a Cluster', { cluster: { nodes: NODES } }, 64],
  ['a client of a Cluster', { client: new Cluster(['redis://localhost'], { lazyConnect: true }) }, 64],
])('with %s there are so many partitions', (_, options, count) => {
  expect(resolveRedisSessionOptions(options).partitions).toBe(count);
});

describe('a log line names Redis, and no user or password', () => {
  const SECRET = 'a-secret';
  const redis = (...args: unknown[]) => new Redis(...(args as [string]));
  const cluster = (...nodes: ClusterNode[]) =>
    new Cluster(nodes, { lazyConnect: true, redisOptions: { username: SECRET, password: SECRET } });

  it.each<[string, RedisSessionModuleOptions]>([
    ['localhost:6379', {}],
    ['redis.internal:6380, database 2', { url: `redis://${SECRET}:${SECRET}@redis.internal:6380/2` }],
    ['redis.internal:6379, TLS', { url: `rediss://:${SECRET}@redis.internal` }],
    ['redis.internal:6379, database 3', { url: `redis://redis.internal/?db=3&password=${SECRET}` }],
    ['redis.internal:6379, database 1', { url: `redis://a:${encodeURIComponent('a@b/c#d?e%f')}@redis.internal/1` }],
    ['::1:6379', { url: `redis://:${SECRET}@[::1]:6379` }],
    [
      'master main of the Sentinels localhost:6379 b:26380, TLS',
      { sentinels: [...NODES, { host: 'b', port: 26_380 }], name: 'main', password: SECRET, tls: {} },
    ],
    ['Cluster of localhost:6379', { cluster: { nodes: NODES }, username: SECRET, password: SECRET }],
    ['Cluster of localhost:6379, TLS', { cluster: { nodes: NODES }, tls: {} }],
    [
      'a:7000, TLS, database 1, as in option `client`',
      { client: redis(7000, 'a', { lazyConnect: true, db: 1, password: SECRET, tls: {} }) },
    ],
    ['"/run/redis.sock", as in option `client`', { client: redis('/run/redis.sock', { lazyConnect: true }) }],
    [
      'master main of the Sentinels localhost:6379, as in option `client`',
      { client: redis({ sentinels: NODES, name: 'main', sentinelPassword: SECRET, lazyConnect: true }) },
    ],
    // Its nodes are known when it has connected.
    ['Cluster, as in option `client`', { client: cluster(`redis://:${SECRET}@a:7000`, 'b:7001', 7003) }],
  ])('%s', (shown, options) => {
    expect(shownAddress(resolveRedisSessionOptions(options).connection)).toBe(shown);
  });
});

describe('an option that is given as undefined, as from an unset environment variable,', () => {
  const warnings: string[] = [];
  beforeEach(() => {
    warnings.length = 0;
    Logger.overrideLogger({ log() {}, error() {}, warn: (line: string) => void warnings.push(line) });
  });
  afterAll(() => Logger.overrideLogger(['error']));

  it.each(['url', 'client', 'sentinels', 'cluster'])('is a warning that names the Redis in use: %s', (option) => {
    const { connection } = resolveRedisSessionOptions({ [option]: undefined });
    expect(shownAddress(connection)).toBe('localhost:6379');
    expect(warnings).toEqual([
      expect.stringMatching(`^Option .${option}. is undefined, so sessions are kept .* redis://localhost:6379. If`),
    ]);
  });

  it.each([
    [undefined, 'deadlines are kept in the default Redis, redis://localhost:6379'],
    [
      { url: 'redis://sessions:1', tls: undefined },
      'deadlines are kept in the default Redis, that of RedisSessionModule',
    ],
  ])('is one about deadlines in their module, beside sessions at %j', (shared, where) => {
    resolveRedisDeadlineOptions({ url: undefined }, shared);
    expect(warnings).toEqual([expect.stringContaining(`Option \`url\` is undefined, so ${where}. If`)]);
  });

  it.each<RedisSessionModuleOptions>([
    {},
    { url: 'redis://localhost:6379' },
    { url: undefined as never, cluster: { nodes: NODES } },
  ])('is none where another one says where Redis is, or none is given: %j', (options) => {
    resolveRedisSessionOptions(options);
    expect(warnings).toEqual([]);
  });
});

/** The users of the connections of requests and of background work. */
async function usersOf(options: RedisSessionModuleOptions): Promise<string[]> {
  const resolved = resolveRedisSessionOptions({ ...options, commandTimeout: '1m' });
  const own = createConnections(resolved);
  try {
    const requests = new RequestConnection(own.request, { commandTimeout: 60_000 });
    return await Promise.all([requests.run((client) => client.acl('WHOAMI'), '{any}'), own.background.acl('WHOAMI')]);
  } finally {
    await closeConnections(own);
  }
}

const GRANTED = ['on', '>secret', '~*', '&*', '+@all'];
const LOGIN = { username: 'app', password: 'secret' };

it('Sentinels name the server, to which the connections log in', async () => {
  const master = await RedisServer.start();
  const replica = await RedisServer.start({ args: ['--replicaof', `127.0.0.1 ${master.port}`] });
  const sentinel = await Sentinel.start('main', master);
  const admin = new Redis(master.url);
  try {
    await admin.acl('SETUSER', 'app', ...GRANTED);
    const sentinels = [{ host: '127.0.0.1', port: sentinel.port }];
    expect(await usersOf({ sentinels, name: 'main', ...LOGIN })).toEqual(['app', 'app']);
  } finally {
    admin.disconnect();
    await sentinel.stop();
    await replica.stop();
    await master.stop();
  }
}, 60_000);

it('a Cluster that speaks only TLS is reached with `tls`, and the connections log in', async () => {
  const authority = await CertificateAuthority.create('authority');
  const cluster = await TlsCluster.start(authority);
  try {
    const admin = new Redis(cluster.port, { tls: { ca: authority.own.cert, servername: 'localhost' } });
    await admin.acl('SETUSER', 'app', ...GRANTED);
    admin.disconnect();
    const nodes = [{ host: 'localhost', port: cluster.port }];
    const tls = { ca: authority.own.cert, servername: 'localhost' };
    expect(await usersOf({ cluster: { nodes }, tls, ...LOGIN })).toEqual(['app', 'app']);
  } finally {
    await cluster.stop();
  }
}, 60_000);

describe('Sentinels and a server that speak only TLS', () => {
  let authority: CertificateAuthority;
  let sentinel: TlsSentinel | undefined;
  beforeAll(async () => {
    authority = await CertificateAuthority.create('authority');
  });
  afterEach(() => sentinel?.stop());

  async function start(login?: { readonly username: string; readonly password: string }) {
    sentinel = await TlsSentinel.start(authority, 'main', login);
    const admin = new Redis(sentinel.master.url, { tls: { ca: authority.own.cert } });
    await admin.acl('SETUSER', 'app', ...GRANTED);
    admin.disconnect();
    const tls = { ca: authority.own.cert, servername: 'localhost' };
    return { sentinels: [{ host: 'localhost', port: sentinel.port }], name: 'main', tls, ...LOGIN };
  }

  it('are reached with `tls`, and the connections log in to the server', async () => {
    expect(await usersOf(await start())).toEqual(['app', 'app']);
  }, 60_000);

  it('are reached like a client of the application that reaches them, Sentinels with a password of their own', async () => {
    const { tls, ...others } = await start({ username: 'finder', password: 'found' });
    const client = new Redis({
      ...others,
      tls,
      sentinelUsername: 'finder',
      sentinelPassword: 'found',
      sentinelTLS: tls,
      enableTLSForSentinelMode: true,
      lazyConnect: true,
    });
    expect(await usersOf({ client })).toEqual(['app', 'app']);
    expect(client.status).toBe('wait');
  }, 60_000);

  it.each([
    ['without the authority', { tls: { servername: 'localhost' } }],
    ['without the user of the server', { username: 'nobody' }],
  ])(
    'are not reached %s',
    async (_, without) => {
      const resolved = resolveRedisSessionOptions({ ...(await start()), ...without });
      const own = createConnections(resolved);
      try {
        const requests = new RequestConnection(own.request, { commandTimeout: 1000 });
        await expect(requests.run((client) => client.ping())).rejects.toThrow(SessionStoreError);
      } finally {
        await closeConnections(own);
      }
    },
    60_000,
  );
});
