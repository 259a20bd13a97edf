import { registerChecks, sessionRepositoryContract } from '@nest-session/testing/contracts';
import type { SessionEncryption } from '../../src/encryption/session-encryption.js';
import type { Repartitioning } from '../../src/keys/session-partitions.js';
import { ContractRedis } from './contract.redis.js';

/**
 * The contract of repositories, for one with these partitions, by default on a single Redis. With a repartitioning, the
 * sessions move while the store is used.
 */
export function describeContract(
  partitions: number | Repartitioning,
  encryption?: SessionEncryption,
  open: () => Promise<ContractRedis> = () => ContractRedis.open(),
): void {
  let redis: ContractRedis;
  beforeAll(async () => {
    redis = await open();
  }, 120_000);
  afterAll(() => redis.close());

  const what = encryption ? 'encryption, partitions' : 'partitions';
  const count = typeof partitions === 'number' ? partitions : `from ${partitions.from} to ${partitions.to}`;
  describe(`RedisSessionRepository, ${what}: ${count}`, () => {
    const checks = sessionRepositoryContract({
      offers: ['indexes', 'events', 'revocations', 'nodes', 'outages'],
      slack: 0,
      open: (options) => redis.store({ ...options, encryption }, partitions),
    });
    // A failed check rejects. As an assertion of Jest it counts as one.
    const passes = (name: string, check: () => Promise<void>) =>
      it(name, () => expect(check()).resolves.toBeUndefined());
    registerChecks(checks, { describe, it: Object.assign(passes, { skip: it.skip }) });
  });
}
