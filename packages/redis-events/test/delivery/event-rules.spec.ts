import { resolveRedisSessionOptions } from '../../../session-redis/src/configuration/redis-session.options.js';
import { eventRules, PACE } from '../../src/configuration/event-rules.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';

it.each([
  [1, 67_108_864, 262_144],
  [8, 8_388_608, 262_144],
  [1024, 65_536, 32_768],
])(
  'with %d partitions a failed event waits from 1 s to 5 min, and dead letters take %d bytes of one, each %d',
  (count, maxSize, maxDataSize) => {
    const rules = eventRules(resolveRedisSessionOptions(), PACE, new SessionPartitions('nest:session', count));
    expect(rules).toMatchObject({
      firstBackOff: 1000,
      longestBackOff: 5 * 60_000,
      deadLetters: { maxSize, maxDataSize },
    });
  },
);
