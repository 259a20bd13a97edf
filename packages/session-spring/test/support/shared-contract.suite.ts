import { SessionStateError } from '@nest-session/core';
import { sessionRepositoryContract } from '@nest-session/testing/contracts';
import { type SpringJson, SpringJsonSerializer } from '../../src/values/spring-json.serializer.js';
import { ContractRedis } from '../../../session-redis/test/support/contract.redis.js';
import { NOT_SHARED, REFUSED } from './shared-contract.js';

const isIn = (list: typeof REFUSED, group: string, name: string) =>
  list[group] === true || (list[group] ?? []).includes(name);

/** The contract of repositories, for one that is shared with a Spring that keeps this JSON. */
export function describeSharedContract(form: SpringJson): void {
  describe(`SharedSessionRepository, JSON: ${form}`, () => {
    let redis: ContractRedis;
    beforeAll(async () => {
      redis = await ContractRedis.open();
    }, 120_000);
    afterAll(() => redis.close());

    const checks = sessionRepositoryContract({
      offers: ['indexes', 'events', 'nodes', 'outages'],
      slack: 0,
      open: (options) => redis.sharedStore(options, new SpringJsonSerializer(form)),
    });
    const of = (isWanted: (group: string, name: string) => boolean) =>
      checks
        .filter(({ skipped, group, name }) => !skipped && isWanted(group ?? '', name))
        .map((each) => [`${each.group}: ${each.name}`, each] as const);

    it.each(of((...check) => !isIn(REFUSED, ...check) && !isIn(NOT_SHARED, ...check)))('%s', async (_, { check }) => {
      await expect(check()).resolves.toBeUndefined();
    });

    it.each(of((...check) => isIn(REFUSED, ...check)))('refuses what %s', async (_, { check }) => {
      const error: unknown = await check().catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(SessionStateError);
      expect(String(error)).toContain('shared with Spring Session');
    });
  });
}
