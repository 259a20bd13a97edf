import { jest } from '@jest/globals';
import { PartitionLooks } from '../../src/delivery/partition-looks.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { HandClock } from '../../../session-redis/test/support/hand-clock.js';

const LEASE = 1000;
const { all } = new SessionPartitions('nest:session', 4);

afterEach(() => {
  jest.restoreAllMocks();
});

function look(looks: PartitionLooks, partition: (typeof all)[number], meanwhile = () => undefined as void): void {
  looks.begin(partition);
  meanwhile();
  looks.looked(partition, false);
}

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
  for (const partition of all) look(looks, partition);
  expect(looks.due()).toEqual([]);
});

it('what may be pending since a look began is looked for after it', () => {
  const looks = new PartitionLooks(all, LEASE);
  void new HandClock();
  look(looks, all[0]!, () => looks.hurry(all[0]!));
  for (const partition of all.slice(1)) look(looks, partition);
  expect(looks.due()).toEqual([all[0]]);
  look(looks, all[0]!);
  expect(looks.due()).toEqual([]);
});
