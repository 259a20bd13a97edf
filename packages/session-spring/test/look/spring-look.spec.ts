import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { SpringKeys } from '../../src/keys/spring-keys.js';
import { lookAtSpring } from '../../src/look/spring-look.js';
import { Pace } from '../../../redis-events/src/timing/background.limiter.js';
import { RECORDED_KEYS } from '../support/spring.records.js';
import { loadSpring } from '../support/spring.store.js';

LeakGuard.install();

let server: RedisServer;
let client: Redis;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
});
beforeEach(() => client.flushall());
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

/** What each scenario left at its end. */
const LAST = [...new Map(RECORDED_KEYS.map((each) => [`${each.from} ${each.scenario}`, each])).values()];

function look(): ReturnType<typeof lookAtSpring> {
  const options = { sample: 100, pace: new Pace(1e6), onProgress: () => undefined };
  return lookAtSpring(client, new SpringKeys('spring:session'), options);
}

it.each(LAST.map((each) => [`${each.from} ${each.scenario}`, each] as const))(
  'knows what is there: %s',
  async (_, each) => {
    await loadSpring(client, each);
    const { repository, serializer, clockAhead = 0, unreadableAttributes } = await look();
    // A record is a moment younger than its keys.
    expect([repository, Math.abs(clockAhead) < 1000]).toEqual(['indexed', true]);
    // Undefined where no session is whole.
    const forms = each.from === 'one-jdk' ? ['java', undefined] : ['json', 'plain-json', undefined];
    expect(forms).toContain(serializer);
    expect(unreadableAttributes).toEqual(
      each.scenario === 'b2-poisoned-session' && each.from === 'interop-plain' ? ['bad'] : [],
    );
  },
);

it('knows where the indexed repository keeps when sessions end', async () => {
  const all = LAST.filter(({ scenario }) => scenario === '03-write-one');
  for (const each of all) {
    await client.flushall();
    await loadSpring(client, each);
    const { expirations } = await look();
    expect([each.from, expirations]).toEqual([
      each.from,
      each.from.endsWith('sorted-set-store') ? 'sorted-set' : 'buckets',
    ]);
  }
  expect(all.map(({ from }) => from)).toContain('one-json-typed-sorted-set-store');
});
