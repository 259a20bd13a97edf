import { setImmediate as nextTurn } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { WaitingCalls } from '../../src/connection/request.connection.js';

LeakGuard.install();
afterEach(() => {
  jest.restoreAllMocks();
});

const TIMEOUT = 5;

const block = (milliseconds: number) => {
  for (const end = performance.now() + milliseconds; performance.now() < end;);
};

/** Calls that begin in so many turns of the event loop. */
async function begin(waiting: WaitingCalls<object>, turns: number): Promise<object[]> {
  const calls: object[] = [];
  for (let turn = 0; turn < turns; turn++) {
    calls.push({ turn });
    waiting.add(calls[turn]!);
    await nextTurn();
    block(1);
  }
  return calls;
}

it('each call expires once, in its order, also when the time of others passes while one is told', async () => {
  const timers = jest.spyOn(globalThis, 'setTimeout');
  const expired: object[] = [];
  const waiting: WaitingCalls<object> = new WaitingCalls(TIMEOUT, (call) => {
    expired.push(call);
    // Until the time of the next has passed.
    block(TIMEOUT);
  });
  for (let round = 0; round < 3; round++) {
    const calls = await begin(waiting, 4);
    await eventually(() => expect(expired).toEqual(calls), { interval: 1 });
    expired.length = 0;
    expect([...waiting.calls]).toEqual([]);
  }
  const own = timers.mock.calls.filter(([callback]) => String(callback).includes('#expireUntil'));
  expect(own.length).toBeGreaterThanOrEqual(3);
  // Node.js warns of others.
  for (const [, delay] of own) expect([0 <= delay!, delay! <= TIMEOUT + 1]).toEqual([true, true]);
});

it('calls that are settled leave no timer, each time', async () => {
  const guard = new LeakGuard();
  guard.start();
  const waiting = new WaitingCalls<object>(60_000, () => undefined);
  for (let round = 0; round < 3; round++) {
    const calls = await begin(waiting, 2);
    for (const call of calls) expect([waiting.has(call), waiting.delete(call)]).toEqual([true, true]);
    expect(waiting.delete(calls[0]!)).toBe(false);
    await guard.check({ grace: 0 });
  }
  guard.stop();
});
