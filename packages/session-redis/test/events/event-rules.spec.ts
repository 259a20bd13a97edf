import { resolveRedisSessionOptions } from '../../src/configuration/redis-session.options.js';
import { eventRules, PACE } from '../../src/delivery/event-rules.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';

it.each([
  [1, 10_000],
  [8, 1250],
])(
  'with %d partitions a failed event waits from 1 s to 5 min, and a partition keeps %d dead letters',
  (count, letters) => {
    const rules = eventRules(resolveRedisSessionOptions(), PACE, new SessionPartitions('nest:session', count));
    expect(rules).toMatchObject({ firstBackOff: 1000, longestBackOff: 5 * 60_000, deadLetters: letters });
  },
);
