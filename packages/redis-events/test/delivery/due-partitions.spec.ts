import { jest } from '@jest/globals';
import { eventTurns, type PartitionTurns } from '../../src/delivery/partition-turns.js';
import type { SessionKeys } from '../../../session-redis/src/keys/session-keys.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { HandClock } from '../../../session-redis/test/support/hand-clock.js';
import { HandSignals } from '../../../session-redis/test/support/hand-signals.js';
import type { PartitionKeys } from '../../src/partitions/partitions.js';

const HOUR = 3_600_000;
const { all } = new SessionPartitions('nest:session', 4);
const [silent, other] = all as [SessionKeys, SessionKeys];

let signals: HandSignals;
let busy: Set<PartitionKeys>;
let clock: HandClock;
let due: PartitionTurns;
beforeEach(() => {
  signals = new HandSignals();
  busy = new Set();
  clock = new HandClock();
  due = eventTurns(all, signals, (partition) => !busy.has(partition));
  jest.spyOn(signals, 'heardSince').mockReturnValue(-Infinity);
  expect(due.take()).toEqual(all);
});
afterEach(() => {
  jest.restoreAllMocks();
});

/** Lets everything run that waits for no timer. */
async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

it('a partition that has not replied ends no wait, and is taken when it has', async () => {
  busy.add(silent);
  signals.tell(silent, 'events');
  let isOver = false;
  const waiting = due.wait(HOUR).then(() => (isOver = true));
  await settle();
  expect(isOver).toBe(false);
  signals.tell(other, 'events');
  await waiting;
  expect(due.take()).toEqual([other]);
  busy.clear();
  await due.wait(HOUR);
  expect(due.take()).toEqual([silent]);
  expect(due.take()).toEqual([]);
});

it('the partitions for which there was no place stay due', () => {
  for (const partition of all) signals.tell(partition, 'missed');
  expect(due.take(1)).toEqual([all[0]]);
  expect(due.take(2)).toEqual([all[1], all[2]]);
  expect(due.take()).toEqual([all[3]]);
});

it('all partitions are due once a minute, although their signals are heard', () => {
  for (let minute = 1; minute <= 3; minute++) {
    clock.pass(59_999);
    expect(due.take()).toEqual([]);
    clock.pass(1);
    expect(due.take()).toEqual(all);
  }
});

it('only partitions whose signals are not heard are due twice a second', () => {
  jest.spyOn(signals, 'heardSince').mockImplementation((partition) => (partition === silent ? Infinity : -Infinity));
  for (let poll = 1; poll <= 3; poll++) {
    clock.pass(499);
    expect(due.take()).toEqual([]);
    clock.pass(1);
    expect(due.take()).toEqual([silent]);
  }
});
