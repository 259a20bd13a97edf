import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { keyOf } from '../support/encryption.fixture.js';
import { describeDeadlineContract } from './deadline-contract.suite.js';

LeakGuard.install();

let redis: RedisServer;
beforeAll(async () => {
  redis = await RedisServer.start();
});
afterAll(() => redis.stop());

describeDeadlineContract('partitions: 1', () => ({ url: redis.url }));
// Each partition has its share of a bound: deadline-bounds.spec.ts. The attempts before a dead letter take three seconds each
// time, and do not know of partitions.
describeDeadlineContract(
  'partitions: 4, encryption',
  () => ({ url: redis.url }),
  { partitions: 4, encryption: { keys: [keyOf('a')] } },
  ['bounds', 'dead letters'],
);
