import { jest } from '@jest/globals';
import { PartitionLooks } from '../../src/delivery/partition-looks.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { HandClock } from '../support/hand-clock.js';

const LEASE = 1000;
const { all } = new SessionPartitions('nest:session', 4);

afterEach(() => {
  jest.restoreAllMocks();
});

it('each partition where nothing is pending is looked at once per lease, and never all of them at once', () => {
  const clock = new HandClock();
  const looks = new PartitionLooks(all, LEASE);
  for (const partition of looks.due()) looks.looked(partition, false);
  for (let lease = 1; lease <= 3; lease++) {
    for (const partition of all) {
      clock.pass(LEASE / 4);
      expect(looks.due()).toEqual([partition]);
      looks.looked(partition, false);
    }
  }
});

it('a partition is looked at again at once where something is pending, or may be', () => {
  const looks = new PartitionLooks(all, LEASE);
  void new HandClock();
  for (const partition of all) looks.looked(partition, partition === all[1]);
  looks.hurry(all[2]!);
  expect(looks.due()).toEqual([all[1], all[2]]);
  for (const partition of all) looks.looked(partition, false);
  expect(looks.due()).toEqual([]);
});
