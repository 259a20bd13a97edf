import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, RedisCluster, RedisServer } from '@nest-session/testing';
import { setTimeout as quiet } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { SpringSessionModule, springSessions } from '../../../session-spring/src/index.js';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

/** Milliseconds after which the network forgets a connection, and for which nobody sends a request. */
const [FORGOTTEN, QUIET] = [15_000, 18_000];

describe('after a quiet time in which the network has forgotten idle connections', () => {
  let server: RedisServer;
  let replica: RedisServer;
  let proxy: TcpProxy;
  beforeAll(async () => {
    server = await RedisServer.start();
    replica = await RedisServer.start({ args: ['--replicaof', '127.0.0.1', `${server.port}`] });
    proxy = await TcpProxy.start({ port: server.port });
    proxy.forgetIdle(FORGOTTEN);
    const client = new Redis(server.url);
    await eventually(async () => expect(await client.info('replication')).toContain('state=online'));
    client.disconnect();
  });
  afterAll(async () => {
    await proxy.stop();
    await replica.stop();
    await server.stop();
  });

  it.each([
    ['in the usual mode', {}],
    ['with replicas', { replicas: 1 }],
    ['where the sessions are read that Spring keeps', { mode: 'read' as const }],
  ])(
    'requests are answered at once, and again: %s',
    async (_, options) => {
      const isReadOnly = 'mode' in options;
      const address = { url: proxy.url, commandTimeout: '1s' } as const;
      const app = await App.start(
        isReadOnly
          ? {
              session: springSessions(),
              store: SpringSessionModule.forRoot({ ...address, ...options }),
              handlers: false,
            }
          : { redis: { ...address, ...options } },
      );
      try {
        const agent = app.agent();
        const statuses = async () => {
          const read = await agent.get('/read');
          const write = isReadOnly ? { status: 201 } : await agent.post('/set/a', { value: 1 });
          return [read.status, write.status];
        };
        if (isReadOnly) agent.setCookie(`SESSION=${btoa('0b1e7a9e-5c1d-4c0f-8f3a-3f3a5c1d4c0f')}; Path=/`);
        expect(await statuses()).toEqual([200, 201]);
        for (let time = 1; time <= 2; time++) {
          await quiet(QUIET);
          expect(await statuses()).toEqual([200, 201]);
        }
      } finally {
        await app.stop();
      }
    },
    120_000,
  );
});

it('every connection to every node of a Cluster is used at least every ten seconds', async () => {
  const cluster = await RedisCluster.start();
  const nodes = cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port }));
  const app = await App.start({ redis: { cluster: { nodes } } });
  try {
    await quiet(QUIET);
    for (const { url } of cluster.nodes) {
      const client = new Redis(url);
      const connections = String(await client.client('LIST'))
        .split('\n')
        .map((line) => /name=(nest:session:\S+) .*idle=(\d+) /.exec(line))
        .filter((found) => found !== null);
      client.disconnect();
      expect(connections.map(([, name]) => name)).toEqual(expect.arrayContaining(['nest:session:request']));
      expect(connections.filter(([, , idle]) => Number(idle) > 12).map(([, name, idle]) => [name, idle])).toEqual([]);
    }
  } finally {
    await app.stop();
    await cluster.stop();
  }
}, 120_000);
