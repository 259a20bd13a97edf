import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisCluster, RedisServer } from '@nest-session/testing';
import { Cluster, Redis } from 'ioredis';
import { keyOf } from '../support/encryption.fixture.js';
import { describeDeadlineContract } from '../support/deadline-contract.suite.js';

LeakGuard.install();

let redis: RedisServer;
let cluster: RedisCluster;
let client: Redis;
let clients: Cluster;
beforeAll(async () => {
  redis = await RedisServer.start();
  cluster = await RedisCluster.start();
  client = new Redis(redis.url);
  clients = new Cluster(cluster.addresses);
}, 120_000);
afterAll(async () => {
  client.disconnect();
  clients.disconnect();
  await Promise.all([redis.stop(), cluster.stop()]);
});

// Each partition has its share of a bound: deadlines.spec.ts.
const OF_ONE_PARTITION = ['bounds'];

describeDeadlineContract(
  'partitions: 4, encryption',
  () => ({ address: { url: redis.url }, flush: () => client.flushall() }),
  { partitions: 4, encryption: { keys: [keyOf('a')] } },
  OF_ONE_PARTITION,
);
describeDeadlineContract(
  'on a Cluster, partitions: 64',
  () => ({
    address: { cluster: { nodes: cluster.addresses } },
    flush: () => Promise.all(clients.nodes('master').map((node) => node.flushall())),
  }),
  {},
  OF_ONE_PARTITION,
);
