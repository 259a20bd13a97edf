import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { DeadlinePartitions, memberOf } from '../../src/keys/deadline-keys.js';
import { DeadlineScripts } from '../../src/scripts/deadlines/deadline.scripts.js';

LeakGuard.install();

const NAME = 'order.payment-due';

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

it('a call that fires for broadcast handlers removes few events, although far more than `maxLength` are there', async () => {
  const [keys] = new DeadlinePartitions('nest:deadlines', 1).all;
  const scripts = new DeadlineScripts(client);
  await client.set(`${keys!.wanted}:broadcast:${NAME}`, '');
  const events = client.pipeline();
  for (let i = 0; i < 1000; i++) events.xadd(keys!.events, '*', 'type', 'deadline');
  await events.exec();
  const ids = Array.from({ length: 30 }, (_, i) => `${i}`);
  const deadlines = ids.map((id) => {
    const data = { text: '1', dataKey: undefined };
    return { member: memberOf(NAME, id), key: id, id, due: { in: 0 }, ifExists: 'replace', data } as const;
  });
  await scripts.schedule(keys!, NAME, deadlines, 100);
  const rules = { batchSize: 10, maxLength: 5, knownFor: 60_000, maxDeadLetterSize: 1_000_000 };
  for (const left of [990, 980, 970]) {
    const { entries, isFull } = await scripts.fire(keys!, rules);
    expect(isFull).toBe(false);
    expect(entries.map(({ outcome }) => outcome)).toEqual(Array(10).fill('claimed'));
    expect(await client.xlen(keys!.events)).toBe(left);
  }
});
