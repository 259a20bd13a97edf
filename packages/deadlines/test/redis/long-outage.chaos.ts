import { deadline } from '@nest-session/deadlines';
import { LeakGuard, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { DeadlineInstance } from '../support/deadline.instance.js';
import { MINUTE } from '../../../session-redis/test/support/store.fixture.js';

LeakGuard.install();

const visit = deadline<{ readonly n: number }>('visit');
const HOUR = 60 * MINUTE;

describe.each([1, 4])('partitions: %i,', (partitions) => {
  let server: SteppableRedisServer;
  let client: Redis;
  let instances: DeadlineInstance[];
  beforeEach(async () => {
    server = await SteppableRedisServer.start({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
    client = new Redis(server.url);
    client.on('error', () => undefined);
    instances = [];
  });
  afterEach(async () => {
    for (const each of instances) await each.stop();
    client.disconnect();
    await server.stop();
  });

  async function start(): Promise<DeadlineInstance> {
    // Longer than all steps together: with its end, what is being handled would be handled again.
    const events = { lease: '1d' } as const;
    const instance = await DeadlineInstance.start({ redis: { url: server.url, partitions, events }, handles: [visit] });
    instances.push(instance);
    return instance;
  }

  /** Epoch milliseconds by the clock of Redis. */
  async function now(): Promise<number> {
    const [seconds, microseconds] = await client.time();
    return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
  }

  it('what comes due while everything is down for an hour is handled by the first instance that starts, with its data', async () => {
    const COUNT = 3000;
    const before = await start();
    const all = Array.from({ length: COUNT }, (_, n) => ({
      key: `${n}`,
      in: `${MINUTE + Math.floor((n * 58 * MINUTE) / COUNT)}ms` as const,
      data: { n },
    }));
    await before.deadlines.scheduleMany(visit, all);
    await before.deadlines.schedule(visit, 'later', { in: '2h', data: { n: -1 } });
    const listed = await before.deadlines.list(visit, { limit: 1000 });
    await before.stop();
    instances = [];
    expect(before.handled).toEqual([]);

    await server.kill();
    await server.stepClock(HOUR);
    await server.restart();
    const after = await start();
    await eventually(() => expect(after.handled.length).toBeGreaterThanOrEqual(COUNT), { timeout: 60_000 });
    expect(after.keys).toEqual(all.map(({ key }) => key).toSorted());
    for (const { key, data } of after.handled) expect(data).toEqual({ n: Number(key) });
    const byId = new Map(after.handled.map((event) => [event.id, event]));
    for (const { id, key, dueAt } of listed) expect(byId.get(id)).toMatchObject({ key, dueAt });
    for (const { late } of after.handled) expect(late).toBeGreaterThan(0);
    expect(await after.deadlines.count(visit)).toBe(1);
    expect(await after.events.deadLetters()).toEqual([]);
  });

  it('steps of the clock of Redis in both directions lose and double none, and none comes before its time', async () => {
    const one = await start();
    await start();
    const handled = () => instances.flatMap((each) => each.handled);
    const steps = fc.array(
      fc.record({
        minutes: fc.constantFrom(-10, -10, -3, 1, 3, 10, 10),
        waits: fc.array(fc.integer({ min: 0, max: 25 }), { minLength: 1, maxLength: 10 }),
      }),
      { minLength: 5, maxLength: 10 },
    );
    let n = 0;
    const walk = async (plan: readonly { readonly minutes: number; readonly waits: readonly number[] }[]) => {
      const dues = new Map<string, number>();
      let latest = 0;
      for (const { minutes, waits } of [...plan, { minutes: 120, waits: [] }]) {
        const many = waits.map((wait) => ({ key: `${(n += 1)}`, in: `${wait * MINUTE}ms` as const, data: { n } }));
        const [from, , to] = [await now(), await one.deadlines.scheduleMany(visit, many), await now()];
        const found = await Promise.all(many.map(({ key }) => one.deadlines.get(visit, key)));
        for (const [i, { key }] of many.entries()) {
          // One that has come at once.
          const dueAt = found[i]?.dueAt ?? to;
          expect(dueAt - waits[i]! * MINUTE).toBeGreaterThanOrEqual(from);
          expect(dueAt - waits[i]! * MINUTE).toBeLessThanOrEqual(to);
          dues.set(key, dueAt);
        }
        latest = Math.max(latest, to);
        await server.stepClock(minutes * MINUTE);
        const due = await now();
        await Promise.all(instances.map((each) => each.sweep()));
        await eventually(() => {
          const keys = new Set(handled().map(({ key }) => key));
          for (const [key, dueAt] of dues) if (dueAt <= due) expect(keys).toContain(key);
        });
        latest = Math.max(latest, await now());
        for (const { key, dueAt, at } of handled()) {
          expect(at).toBeGreaterThanOrEqual(dueAt);
          if (dues.has(key)) expect(dues.get(key)).toBeLessThanOrEqual(latest);
        }
      }
      const keys = handled().map(({ key }) => key);
      expect(keys.toSorted()).toEqual(Array.from({ length: n }, (_, i) => `${i + 1}`).toSorted());
      for (const { key, data } of handled()) expect(data).toEqual({ n: Number(key) });
    };
    await fc.assert(fc.asyncProperty(steps, walk), { numRuns: 20, endOnFailure: true });
  });
});
