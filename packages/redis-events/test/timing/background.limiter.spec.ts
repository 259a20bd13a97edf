import { setTimeout as pause } from 'node:timers/promises';
import { EventTrimmer } from '../../src/delivery/event.trimmer.js';
import { SessionExpirationSweeper } from '../../../session-redis/src/expiration/session-expiration.sweeper.js';
import { EventStreamScripts } from '../../src/scripts/event-stream.scripts.js';
import { BackgroundLimiter } from '../../src/timing/background.limiter.js';
import { DEAD_LETTERS, MINUTE, Store } from '../../../session-redis/test/support/store.fixture.js';
import { SESSION_ENTRIES, sessionEvents } from '../../../session-redis/test/support/event-scripts.js';
import { trimOnce } from '../../../session-redis/test/support/trim-once.js';

const HOUR = 60 * MINUTE;

/** A limiter, and calls that note when they begin and end; each takes a turn of the event loop. */
function watched() {
  const limiter = new BackgroundLimiter();
  const log: string[] = [];
  const begins: number[] = [];
  const ends: number[] = [];
  const call = (name: string) =>
    limiter.run(async () => {
      begins.push(performance.now());
      log.push(`${name} begins`);
      await pause(0);
      log.push(`${name} ends`);
      ends.push(performance.now());
      return name;
    }, 'key');
  return { limiter, log, begins, ends, call };
}

describe('the limiter of background work', () => {
  it('runs one call at a time, in their order', async () => {
    const { log, call } = watched();
    expect(await Promise.all(['a', 'b', 'c'].map(call))).toEqual(['a', 'b', 'c']);
    expect(log).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
  });

  it('leaves at least a millisecond between the end of a call and the next one', async () => {
    const { begins, ends, call } = watched();
    await Promise.all(Array.from({ length: 20 }, (_, n) => call(`${n}`)));
    const pauses = ends.slice(0, -1).map((end, n) => begins[n + 1]! - end);
    expect(pauses).toHaveLength(19);
    // A timer of Node.js may come early, by less than a millisecond of its clock.
    expect(pauses.toSorted((a, b) => a - b)[9]).toBeGreaterThan(0.5);
  });

  it('leaves a longer pause after a longer call', async () => {
    const { limiter, log, call } = watched();
    await limiter.run(() => pause(15), 'key');
    const asLong = pause(15).then(() => log.push('as long as the call'));
    await Promise.all([call('next'), asLong]);
    expect(log).toEqual(['as long as the call', 'next begins', 'next ends']);
  });

  it('does not pause for long after a call that has waited for Redis', async () => {
    const { limiter, log, call } = watched();
    await limiter.run(() => pause(300), 'key');
    const asLong = pause(300).then(() => log.push('as long as the call'));
    await Promise.all([call('next'), asLong]);
    expect(log).toEqual(['next begins', 'next ends', 'as long as the call']);
  });

  it('passes on the error of a call, and runs the next one', async () => {
    const { limiter, call } = watched();
    const failed = limiter.run(() => Promise.reject(new Error('lost')), 'key');
    const next = call('next');
    await expect(failed).rejects.toThrow('lost');
    expect(await next).toBe('next');
  });
});

it('an instance sweeps, claims and trims in one call at a time', async () => {
  const store = await Store.open();
  const limiter = new BackgroundLimiter();
  const events = new EventStreamScripts(store.client, SESSION_ENTRIES);
  const options = { batchSize: 10 };
  const sweeper = new SessionExpirationSweeper(store.client, store.scripts, store.partitions, options, limiter);
  const limits = { grace: 1000, retention: 1000, maxLength: 10, lease: 30_000, deadLetters: DEAD_LETTERS };
  const trimmer = new EventTrimmer(store.client, events, store.partitions, limits, limiter, sessionEvents());
  let running = 0;
  const overlaps: string[] = [];
  const calls = new Set<string>();
  const watch = <T extends object>(target: T, method: keyof T & string) => {
    const call = (target[method] as (...args: unknown[]) => Promise<unknown>).bind(target);
    Object.defineProperty(target, method, {
      value: async (...args: unknown[]) => {
        calls.add(method);
        if (++running > 1) overlaps.push(method);
        return call(...args).finally(() => running--);
      },
    });
  };
  try {
    const ids = await Promise.all(Array.from({ length: 200 }, () => store.create({ a: '1' })));
    await Promise.all(ids.map((id) => store.runOut(id)));
    watch(store.scripts, 'claimExpired');
    watch(events, 'trim');
    watch(events, 'trimDeadLetters');
    watch(store.client, 'sscan');
    await Promise.all([sweeper.runOnce({ ahead: HOUR }), sweeper.runOnce({ ahead: HOUR }), trimOnce(trimmer)]);
    expect(calls).toEqual(new Set(['sscan', 'claimExpired', 'trim', 'trimDeadLetters']));
    expect(overlaps).toEqual([]);
  } finally {
    await store.close();
  }
});
