import { jest } from '@jest/globals';
import { PartitionTurns } from '../../src/delivery/partition-turns.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { HandClock } from '../../../session-redis/test/support/hand-clock.js';
import { HandSignals } from '../../../session-redis/test/support/hand-signals.js';

const LEASE = 1000;
const { all } = new SessionPartitions('nest:session', 4);

afterEach(() => {
  jest.restoreAllMocks();
});

/** Those of a member of a group, which looks for events that another one has left. */
const looksOf = () => new PartitionTurns(all, new HandSignals(), () => true, LEASE);

it('each partition where nothing is pending is looked at once per lease, and never all of them at once', () => {
  const clock = new HandClock();
  const looks = looksOf();
  expect(looks.take()).toEqual(all);
  for (let lease = 1; lease <= 3; lease++) {
    for (const partition of all) {
      clock.pass(LEASE / 4);
      expect(looks.take()).toEqual([partition]);
    }
  }
});

it('a partition is looked at again at once where something is pending, or may be', () => {
  const looks = looksOf();
  void new HandClock();
  expect(looks.take()).toEqual(all);
  for (const partition of [all[2], all[1]]) looks.hurry(partition!);
  expect(looks.take()).toEqual([all[1], all[2]]);
  expect(looks.take()).toEqual([]);
});

it('what may be pending since a look began is looked for after it', () => {
  const looks = looksOf();
  void new HandClock();
  const [looking] = looks.take();
  looks.hurry(looking!);
  expect(looks.take()).toEqual([looking]);
  expect(looks.take()).toEqual([]);
});
