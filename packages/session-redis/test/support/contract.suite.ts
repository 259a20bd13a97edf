import { registerChecks, sessionRepositoryContract } from '@nest-session/testing/contracts';
import type { ExpirationStoreName } from '../../src/configuration/expirations.options.js';
import type { SessionEncryption } from '../../src/encryption/session-encryption.js';
import { ContractRedis } from './contract.redis.js';

export interface ContractVariant {
  readonly encryption?: SessionEncryption;
  /** Where each of the two nodes notes the ends of sessions. @default in buckets */
  readonly expirations?: readonly [ExpirationStoreName, ExpirationStoreName];
  /** @default a single Redis */
  readonly open?: () => Promise<ContractRedis>;
}

/** The contract of repositories, for one with so many partitions. */
export function describeContract(
  partitions: number,
  { encryption, expirations, open = () => ContractRedis.open() }: ContractVariant = {},
): void {
  let redis: ContractRedis;
  beforeAll(async () => {
    redis = await open();
  }, 120_000);
  afterAll(() => redis.close());

  const where = expirations ? `${[...new Set(expirations)].join(' and ')}, ` : '';
  const what = encryption ? 'encryption, partitions' : 'partitions';
  describe(`RedisSessionRepository, ${where}${what}: ${partitions}`, () => {
    const checks = sessionRepositoryContract({
      offers: ['indexes', 'events', 'revocations', 'marks', 'nodes', 'outages'],
      slack: 0,
      open: (options) => redis.store({ ...options, encryption }, partitions, expirations),
    });
    // A failed check rejects. As an assertion of Jest it counts as one.
    const passes = (name: string, check: () => Promise<void>) =>
      it(name, () => expect(check()).resolves.toBeUndefined());
    registerChecks(checks, { describe, it: Object.assign(passes, { skip: it.skip }) });
  });
}
