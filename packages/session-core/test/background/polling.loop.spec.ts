import { AsyncLocalStorage } from 'node:async_hooks';
import { Logger } from '@nestjs/common';
import { jest } from '@jest/globals';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { PollingLoop } from '../../src/background/polling.loop.js';

LeakGuard.install();

/** Resolves when every earlier timer has fired: timers of one duration fire in the order in which they were set. */
async function dueTimers(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 0));
  await new Promise((resolve) => setImmediate(resolve));
}

describe('PollingLoop', () => {
  it('repeats a step until it is stopped, one at a time', async () => {
    let running = 0;
    let most = 0;
    let steps = 0;
    const loop = new PollingLoop('The loop', 1, async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      steps++;
    });
    loop.start();
    loop.start();
    await eventually(() => steps >= 3, { interval: 1 });
    const stopped = loop.stop();
    loop.start();
    await stopped;
    await eventually(() => steps >= 6, { interval: 1 });
    await loop.stop();
    const before = steps;
    await dueTimers();
    expect({ most, running, steps }).toEqual({ most: 1, running: 0, steps: before });
  });

  it('runs no step on behalf of the request that has started it', async () => {
    const requests = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const loop = new PollingLoop('The loop', 1, () => Promise.resolve(seen.push(requests.getStore())));
    requests.run('of ann', () => loop.start());
    await eventually(() => seen.length >= 2, { interval: 1 });
    await loop.stop();
    expect(new Set(seen)).toEqual(new Set([undefined]));
  });

  it('has one timer however often it is started, and none when it is stopped, each time', async () => {
    const guard = new LeakGuard();
    guard.start();
    const loop = new PollingLoop('The loop', 60_000, () => Promise.resolve());
    for (let round = 0; round < 3; round++) {
      for (let start = 0; start < 2; start++) loop.start();
      await loop.stop();
      await guard.check({ grace: 0 });
    }
    guard.stop();
  });

  it('waits for the running step when it stops', async () => {
    let finish: (() => void) | undefined;
    const loop = new PollingLoop('The loop', 0, () => new Promise<void>((resolve) => (finish = resolve)));
    loop.start();
    await eventually(() => finish !== undefined, { interval: 1 });
    let isStopped = false;
    const stopped = loop.stop().then(() => (isStopped = true));
    await new Promise((resolve) => setImmediate(resolve));
    expect(isStopped).toBe(false);
    finish!();
    await stopped;
  });

  it('starts no step before the last one has ended when it is stopped and started again', async () => {
    const finish: (() => void)[] = [];
    const loop = new PollingLoop('The loop', 0, () => new Promise<void>((resolve) => finish.push(resolve)));
    loop.start();
    await eventually(() => finish.length === 1, { interval: 1 });
    const stopped = loop.stop();
    loop.start();
    await dueTimers();
    expect(finish).toHaveLength(1);
    finish[0]!();
    await stopped;
    await eventually(() => finish.length === 2, { interval: 1 });
    finish[1]!();
    await loop.stop();
  });

  it('continues after a step that fails', async () => {
    const error = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    let steps = 0;
    const loop = new PollingLoop('The loop', 0, () => {
      steps++;
      throw new Error('no');
    });
    loop.start();
    // Also after the second one.
    await eventually(() => steps >= 3, { interval: 1 });
    await loop.stop();
    expect(error).toHaveBeenCalledWith('The loop failed and will be retried', expect.stringContaining('no'));
    error.mockRestore();
  });
});
