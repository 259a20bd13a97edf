import { LeakGuard, Sentinel } from '@nest-session/test-infrastructure';
import { eventually, RedisCluster, RedisServer } from '@nest-session/testing';
import { Cluster, Redis } from 'ioredis';
import type { RedisSessionModuleOptions } from '../../src/configuration/redis-session.options.js';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

let current: string;

async function onEach(servers: readonly RedisServer[], run: (admin: Redis) => Promise<unknown>): Promise<void> {
  for (const { url } of servers) {
    const admin = new Redis(url);
    await run(admin);
    admin.disconnect();
  }
}

async function change(servers: readonly RedisServer[], password: string): Promise<void> {
  current = password;
  await onEach(servers, (admin) =>
    admin.call('ACL', 'SETUSER', 'app', 'reset', 'on', `>${password}`, '~*', '&*', '+@all'),
  );
}

/** Each time that the password has changed and the connections were ended, sessions work again by themselves. */
async function survives(servers: readonly RedisServer[], redis: RedisSessionModuleOptions, changed: () => void) {
  const app = await App.start({ redis: { commandTimeout: '1s', ...redis } });
  try {
    const agents = Array.from({ length: 10 }, () => app.agent());
    const statuses = async () =>
      Promise.all(agents.map(async (agent) => (await agent.post('/set/a', { value: 1 })).status));
    const areStored = async () => expect(await statuses()).toEqual(agents.map(() => 201));
    await areStored();
    for (const password of ['second', 'third']) {
      await change(servers, password);
      changed();
      await onEach(servers, (admin) => admin.call('CLIENT', 'KILL', 'USER', 'app'));
      await eventually(areStored);
    }
  } finally {
    await app.stop();
  }
}

describe('the password of a Cluster changes', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await RedisCluster.start();
  });
  beforeEach(() => change(cluster.nodes, 'first'));
  afterAll(() => cluster.stop());
  const nodes = () => cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port }));

  it('where a function gives it', async () => {
    const redis = { cluster: { nodes: nodes() }, username: 'app', password: () => current };
    await survives(cluster.nodes, redis, () => undefined);
  }, 120_000);

  it('where the options of a client have it', async () => {
    const redisOptions = { username: 'app', password: current };
    const client = new Cluster(nodes(), { lazyConnect: true, redisOptions });
    await survives(cluster.nodes, { client }, () => (client.options.redisOptions!.password = current));
    client.disconnect();
  }, 120_000);
});

it('the password of a primary changes that Sentinels name', async () => {
  const server = await RedisServer.start();
  const replica = await RedisServer.start({ args: ['--replicaof', '127.0.0.1', `${server.port}`] });
  const sentinel = await Sentinel.start('main', server);
  try {
    await change([server], 'first');
    const redis = {
      sentinels: [{ host: '127.0.0.1', port: sentinel.port }],
      name: 'main',
      username: 'app',
      password: () => current,
    };
    await survives([server], redis, () => undefined);
  } finally {
    await sentinel.stop();
    await replica.stop();
    await server.stop();
  }
}, 120_000);
