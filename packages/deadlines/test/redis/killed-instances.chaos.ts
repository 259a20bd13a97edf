import { setTimeout as pause } from 'node:timers/promises';
import { DeadlineEvents, Deadlines } from '@nest-session/deadlines';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { PROGRAM, race, startRacer } from '../support/deadline-race.js';
import { print } from '../../../session-redis/test/support/figures.js';
import { WorkerProcess } from '../../../session-redis/test/support/worker.process.js';

LeakGuard.install();

const COUNT = 50_000;
const INSTANCES = 10;
/** Milliseconds until the first one is due, and until the last one is: it takes that long to schedule them. */
const [FIRST, SECOND] = [20_000, 1000];
const PATIENCE = { timeout: 100_000, interval: 200 };

let server: RedisServer;
let effects: Redis;
let workers: WorkerProcess[];
let watcher: Awaited<ReturnType<typeof startRacer>>;
beforeEach(async () => {
  server = await RedisServer.start();
  effects = new Redis(server.url, { db: 1 });
  workers = [];
});
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.end()));
  await watcher.stop();
  effects.disconnect();
  await server.stop();
});

async function startInstances(partitions: number): Promise<void> {
  const environment = {
    REDIS_URL: server.url,
    PARTITIONS: String(partitions),
    LEASE: '5s',
    EFFECTS: 'on',
    SLOW: '50',
  };
  for (let i = 0; i < INSTANCES; i += 2)
    workers.push(...(await Promise.all([1, 2].map(() => WorkerProcess.start(environment, { program: PROGRAM })))));
}

const calls = async () => Number(await effects.get('calls'));

it.each([1, 4])(
  'ten instances, 50,000 due in one second, five instances killed: each is handled, and its effect happens once, partitions: %i',
  async (partitions) => {
    watcher = await startRacer({ url: server.url, partitions, isHandling: false });
    const deadlines = watcher.app.get(Deadlines);
    await startInstances(partitions);
    const begin = Date.now() + FIRST;
    const all = Array.from({ length: COUNT }, (_, i) => ({
      key: `order-${i}`,
      data: `data of ${i}`,
      at: begin + Math.floor((i * SECOND) / COUNT),
    }));
    await deadlines.scheduleMany(race, all);
    expect(Date.now()).toBeLessThan(begin);
    expect(await deadlines.count(race)).toBe(COUNT);

    const [doomed, survivors] = [workers.slice(0, INSTANCES / 2), workers.slice(INSTANCES / 2)];
    for (const [i, worker] of doomed.entries()) {
      await eventually(async () => (await calls()) > ((i + 1) * COUNT) / 10, { ...PATIENCE, interval: 10 });
      await worker.end('SIGKILL');
    }
    const left = COUNT - (await effects.dbsize()) / 2;
    expect(left).toBeGreaterThan(COUNT / 10);
    await eventually(async () => {
      expect(await effects.dbsize()).toBeGreaterThanOrEqual(2 * COUNT + 1);
      const [group] = await watcher.app.get(DeadlineEvents).list();
      expect(group).toMatchObject({ lag: 0, pending: 0, retrying: 0 });
    }, PATIENCE);
    const took = Date.now() - begin;
    await pause(500);

    const counts = await effects.mget(all.map(({ key }) => `count:${key}`));
    expect(counts.filter((count) => count !== '1')).toEqual([]);
    const ids = await effects.keys('effect:*');
    expect(ids).toHaveLength(COUNT);
    const handled = (await effects.mget(ids)).map(
      (text) => JSON.parse(text!) as (typeof all)[number] & { dueAt: number },
    );
    const byKey = new Map(handled.map((each) => [each.key, each]));
    for (const { key, data, at } of all) expect(byKey.get(key)).toMatchObject({ data, dueAt: at });
    expect(handled.filter(({ at, dueAt }) => at < dueAt)).toEqual([]);
    expect(await deadlines.count(race)).toBe(0);
    const [group] = await watcher.app.get(DeadlineEvents).list();
    expect(group).toMatchObject({ lag: 0, pending: 0, retrying: 0, dropped: 0, lostDeadLetters: 0 });
    expect(await watcher.app.get(DeadlineEvents).deadLetters()).toEqual([]);
    const lateness = handled.map(({ at, dueAt }) => at - dueAt).toSorted((one, other) => one - other);
    print(
      `${COUNT} due in one second, partitions: ${partitions}: all were handled after ${took} ms, in ${await calls()} calls of ` +
        `handlers; found late by ${lateness[COUNT / 2]} ms at p50, ${lateness[Math.floor(COUNT * 0.99)]} ms at p99`,
    );
    expect(survivors.every(({ lines }) => lines.length === 1)).toBe(true);
  },
  300_000,
);
