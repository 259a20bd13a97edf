import { fileURLToPath } from 'node:url';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { WorkerProcess } from '../../../session-redis/test/support/worker.process.js';
import { EventsInstance } from '../support/events.instance.js';

LeakGuard.install();

const PROGRAM = fileURLToPath(new URL('../support/events.worker.mjs', import.meta.url));
const COUNT = 3000;
const PATIENCE = { timeout: 120_000, interval: 100 };

it.each([1, 4])(
  'four instances, 3,000 events, two instances killed: each is handled, and its effect happens once, partitions: %i',
  async (partitions) => {
    const server = await RedisServer.start();
    const effects = new Redis(server.url, { db: 1 });
    const sender = await EventsInstance.start({ events: { url: server.url, partitions } });
    const settings = { REDIS_URL: server.url, PARTITIONS: String(partitions) };
    const workers = await Promise.all([1, 2, 3, 4].map(() => WorkerProcess.start(settings, { program: PROGRAM })));
    try {
      const orders = Array.from({ length: COUNT }, (_, order) => order);
      const recording = Promise.all(orders.map((order) => sender.events.record('paid', { order })));
      const calls = async () => Number(await effects.get('calls'));
      for (const [i, worker] of workers.slice(0, 2).entries()) {
        await eventually(async () => expect(await calls()).toBeGreaterThan((i + 1) * 300), {
          ...PATIENCE,
          interval: 5,
        });
        await worker.end('SIGKILL');
      }
      expect(await calls()).toBeLessThan(COUNT);
      const ids = await recording;
      await eventually(async () => {
        expect(await effects.exists(...ids.map((id) => `effect:${id}`))).toBe(COUNT);
        expect(await sender.groups.list()).toMatchObject([{ lag: 0, pending: 0, retrying: 0, dropped: 0 }]);
      }, PATIENCE);
      const counts = await effects.mget(orders.map((order) => `count:${order}`));
      expect(counts.filter((count) => count !== '1')).toEqual([]);
      expect(await sender.groups.deadLetters()).toEqual([]);
    } finally {
      await Promise.all(workers.map((worker) => worker.end()));
      await sender.stop();
      effects.disconnect();
      await server.stop();
    }
  },
);
