import { InvalidSessionOptionsError, SessionStoreError } from '@nest-session/core';
import type { RedisSessionModuleOptions } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { Cluster, Redis } from 'ioredis';
import { resolveRedisSessionOptions } from '../../src/configuration/redis-session.options.js';
import { closeConnections, createConnections } from '../../src/connection/redis-connections.js';
import { RequestConnection } from '../../src/connection/request.connection.js';
import { CertificateAuthority } from '../support/tls.redis.js';
import { TlsCluster } from '../support/tls.cluster.js';
import { TlsSentinel } from '../support/tls.sentinel.js';
import { Sentinel } from '../support/sentinel.js';

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
    'a client of a Cluster with a key prefix',
    { client: new Cluster(['redis://localhost'], { lazyConnect: true, keyPrefix: 'app:' }) },
    ['Option `client` has a `keyPrefix`, which scripts do not see: remove it and use option `namespace`.'],
  ],
])('%s is refused, with all problems', (_, options, problems) => {
  expect(problemsOf(options)).toEqual(problems);
});

it.each<[string, RedisSessionModuleOptions, number]>([
  ['one server', {}, 1],
  ['Sentinels', { sentinels: NODES, name: 'main' }, 1],
  ['a Cluster', { cluster: { nodes: NODES } }, 64],
  ['a client of a Cluster', { client: new Cluster(['redis://localhost'], { lazyConnect: true }) }, 64],
])('with %s there are so many partitions', (_, options, count) => {
  expect(resolveRedisSessionOptions(options).partitions).toBe(count);
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
