import { setTimeout as pause } from 'node:timers/promises';
import { Gate } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { ConcurrencyLimiter } from '../../src/delivery/concurrency.limiter.js';
import { toStreamEntry } from '../../src/scripts/stream/stream-entry.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { Timers } from '../../../session-redis/test/support/timers.js';

const [partition] = new SessionPartitions('nest:session', 2).all;
const entryAt = (position: string) => toStreamEntry(partition!, [position, []]);
const never = new AbortController().signal;

/** Begins an entry that waits for its data, calls its handlers, and waits until it is acknowledged. */
function begin(limiter: ConcurrencyLimiter, position: string, log: string[] = []) {
  const [entry, data, handlers, acknowledged] = [entryAt(position), new Gate(), new Gate(), new Gate()];
  limiter.begin(entry, false, async () => {
    await data.pass();
    await limiter.run(entry, () => {
      log.push(position);
      return handlers.pass();
    });
    await acknowledged.pass();
  });
  return { data, handlers, acknowledged };
}

describe('a limiter of places for two events, with events on other nodes,', () => {
  it('frees the place of an event whose data do not come, and of one that cannot be acknowledged', async () => {
    const limiter = new ConcurrencyLimiter(2, { hasOtherNodes: true });
    const [first, second] = [begin(limiter, '1-0'), begin(limiter, '2-0')];
    second.data.open();
    second.handlers.open();
    expect(limiter.free).toBe(0);
    await limiter.untilFree(never);
    await eventually(() => expect(limiter.free).toBe(2));
    expect(limiter.entries).toHaveLength(2);
    for (const gate of [first.data, first.handlers, first.acknowledged, second.acknowledged]) gate.open();
    await limiter.untilIdle();
    expect([limiter.entries.length, limiter.free]).toEqual([0, 2]);
  });

  it('keeps the place of an event while its handlers run, however long', async () => {
    const limiter = new ConcurrencyLimiter(2, { hasOtherNodes: true });
    const [first, second] = [begin(limiter, '1-0'), begin(limiter, '2-0')];
    first.data.open();
    await first.handlers.reached();
    await limiter.untilFree(never);
    await eventually(() => expect(limiter.free).toBe(1));
    for (const each of [first, second]) for (const gate of Object.values(each)) gate.open();
    await limiter.untilIdle();
  });

  it('runs the handlers of two events at a time, in the order in which their data come', async () => {
    const limiter = new ConcurrencyLimiter(2, { hasOtherNodes: true });
    const log: string[] = [];
    const late = ['1-0', '2-0'].map((position) => begin(limiter, position, log));
    await limiter.untilFree(never);
    await eventually(() => expect(limiter.free).toBe(2));
    const others = ['3-0', '4-0'].map((position) => begin(limiter, position, log));
    for (const { data } of [...others, ...late]) data.open();
    await pause(0);
    expect(log).toEqual(['3-0', '4-0']);
    expect(limiter.free).toBe(0);
    others[1]!.handlers.open();
    await eventually(() => expect(log).toEqual(['3-0', '4-0', '1-0']));
    for (const each of [...others, ...late]) for (const gate of Object.values(each)) gate.open();
    await limiter.untilIdle();
    expect(log).toEqual(['3-0', '4-0', '1-0', '2-0']);
  });
});

it('leaves no timer when a place was free in time, or nothing waits any longer', async () => {
  const timers = new Timers();
  timers.start();
  const limiter = new ConcurrencyLimiter(1);
  for (let round = 1; round <= 2; round++) {
    const first = begin(limiter, `${round}-0`);
    const stopping = new AbortController();
    const [waiting, stopped] = [limiter.untilFree(never), limiter.untilFree(stopping.signal)];
    stopping.abort();
    await expect(stopped).rejects.toThrow('aborted');
    for (const gate of Object.values(first)) gate.open();
    await waiting;
    expect(timers.left()).toEqual([]);
  }
  timers.stop();
});

it('keeps the place of an event for which no data come where no event is on another node', async () => {
  const limiter = new ConcurrencyLimiter(1);
  const waiting = begin(limiter, '1-0');
  const impatient = limiter.untilFree(AbortSignal.timeout(1500));
  await expect(impatient).rejects.toThrow('aborted');
  for (const gate of Object.values(waiting)) gate.open();
  await limiter.untilIdle();
});
