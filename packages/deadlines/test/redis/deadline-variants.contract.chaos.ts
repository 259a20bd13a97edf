import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisCluster } from '@nest-session/testing';
import { keyOf } from '../../../session-redis/test/support/encryption.fixture.js';
import { describeDeadlineContract } from '../support/deadline-contract.suite.js';
import { ServerPool } from '../../../session-redis/test/support/server-pool.js';

LeakGuard.install();

const servers = new ServerPool();
let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await RedisCluster.start();
}, 120_000);
afterAll(() => Promise.all([servers.stop(), cluster.stop()]));

// Each partition has its share of a bound: deadlines.spec.ts.
const OF_ONE_PARTITION = ['bounds'];

describeDeadlineContract(
  'partitions: 4, encryption',
  async () => {
    const { url, release } = await servers.take();
    return { address: { url }, release };
  },
  { partitions: 4, encryption: { keys: [keyOf('a')] } },
  OF_ONE_PARTITION,
);

let namespaces = 0;
describeDeadlineContract(
  'on a Cluster, partitions: 64',
  // All checks share the Cluster, each in a namespace of its own.
  async () => ({
    address: { cluster: { nodes: cluster.addresses }, namespace: `check-${++namespaces}` },
    release: async () => undefined,
  }),
  {},
  OF_ONE_PARTITION,
);
