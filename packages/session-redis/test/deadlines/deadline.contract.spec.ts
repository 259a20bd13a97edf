import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { describeDeadlineContract } from '../support/deadline-contract.suite.js';

LeakGuard.install();

let redis: RedisServer;
let client: Redis;
beforeAll(async () => {
  redis = await RedisServer.start();
  client = new Redis(redis.url);
});
afterAll(async () => {
  client.disconnect();
  await redis.stop();
});

describeDeadlineContract('partitions: 1', () => ({ address: { url: redis.url }, flush: () => client.flushall() }));
