import { SessionStateError } from '@nest-session/core';
import type { SessionEventDispatcher, SessionRepositoryOptions } from '@nest-session/core/store';
import { sessionRepositoryContract } from '@nest-session/testing/contracts';
import { type SpringJson, SpringJsonSerializer } from '../../src/values/spring-json.serializer.js';
import { namespaceBeside, SharedKeys } from '../../src/keys/spring-keys.js';
import { SharedEventProducer } from '../../src/shared/shared-event-producer.js';
import { SharedSessionRepository } from '../../src/shared/shared-session.repository.js';
import { SharedSessionSweeper } from '../../src/shared/shared-session.sweeper.js';
import { SweepCounter } from '../../../redis-events/src/cleanup/due.sweeper.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { ContractRedis } from '../../../session-redis/test/support/contract.redis.js';
import { NOT_SHARED, REFUSED } from './shared-contract.js';

const isIn = (list: typeof REFUSED, group: string, name: string) =>
  list[group] === true || (list[group] ?? []).includes(name);

const BATCH_SIZE = 100;

/** Makes a store that is shared with Spring, where `serializer` says which JSON Spring keeps. */
function sharedStore(
  options: SessionRepositoryOptions,
  serializer: SpringJsonSerializer,
): Parameters<ContractRedis['storeOf']>[0] {
  return (spring, [one, two]) => {
    const [own] = new SessionPartitions(namespaceBeside(spring)).all;
    const keys = new SharedKeys(spring, own!, 0);
    const repositoryOn = ({ connection }: typeof one) =>
      new SharedSessionRepository(connection, keys, { serializer }, { ...options, serializer });
    const sweeper = new SharedSessionSweeper(one.background, keys, { batchSize: BATCH_SIZE });
    return {
      repositories: [repositoryOn(one), repositoryOn(two)],
      partition: own!,
      producer: new SharedEventProducer({} as SessionEventDispatcher, { serializer }),
      reportExpired: () => sweeper.claimIn(own!, new SweepCounter(false), {}),
    };
  };
}

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
      open: (options) => redis.storeOf(sharedStore(options, new SpringJsonSerializer(form))),
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
