import { LeakGuard, Sentinel } from '@nest-session/test-infrastructure';
import { RedisCluster, RedisServer } from '@nest-session/testing';
import ioredis from 'ioredis';
import ioredis5 from 'ioredis-5';
import { describeTelemetry } from '../support/telemetry.suite.js';

LeakGuard.install();

const VERSIONS = [
  ['ioredis 6', ioredis],
  ['ioredis 5', ioredis5 as never],
] as const;

describe('on a Cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await RedisCluster.start();
  }, 60_000);
  afterAll(() => cluster.stop());

  for (const [name, version] of VERSIONS) {
    describeTelemetry(`${name}, Cluster`, {
      ioredis: version,
      namespace: `cluster-${name}`,
      sessionIds: 'plain',
      open: ({ Cluster }) => new Cluster([...cluster.addresses]),
    });
  }
});

describe('with a Sentinel', () => {
  let [master, replica]: RedisServer[] = [];
  let sentinel: Sentinel;
  beforeAll(async () => {
    master = await RedisServer.start();
    replica = await RedisServer.start({ args: ['--replicaof', `127.0.0.1 ${master.port}`] });
    sentinel = await Sentinel.start('main', master);
  }, 60_000);
  afterAll(async () => {
    await sentinel.stop();
    await replica!.stop();
    await master!.stop();
  });

  for (const [name, version] of VERSIONS) {
    describeTelemetry(`${name}, Sentinel`, {
      ioredis: version,
      namespace: `sentinel-${name}`,
      sessionIds: 'hashed',
      open: ({ Redis }) => new Redis({ sentinels: [{ host: '127.0.0.1', port: sentinel.port }], name: 'main' }),
    });
  }
});
