import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { generateSessionKey, type StorePrimitives } from '@nest-session/core/internal';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { redisUsage } from './redis.usage.js';
import { interleave, quantile } from './rounds.js';
import { inFlight, startStore, type StoreContext } from './store.context.js';
import { medianOf, number, ratio, table } from './table.js';

// What a save costs when a replica must have it before the request succeeds. The replica is on this machine; the
// network between two of them is a relay that delays what it passes on.
const ROUNDS = process.env.BENCH_QUICK ? 5 : 15;
const WARM_UP = 1;
const SAVES = 2000;
const CONCURRENCY = [1, 16, 64];
const ATTRIBUTES = new Map([['cart', JSON.stringify('x'.repeat(100))]]);
const NOTHING = new Map<string, string>();

/** A process that passes on what it receives after so many milliseconds, and its port. */
async function relay(port: number, delay: number): Promise<{ port: number; stop: () => void }> {
  const program = fileURLToPath(new URL('relay.main.js', import.meta.url));
  const child = fork(program, [`${port}`, `${delay}`]);
  const [own] = (await once(child, 'message')) as [number];
  return { port: own, stop: () => child.disconnect() };
}

interface Subject {
  readonly name: string;
  readonly context: StoreContext;
  readonly redis: Redis;
  stop(): Promise<void>;
}

/** `delay`: milliseconds to the replica, and as many back. */
async function start(name: string, replicas: number, delay?: number): Promise<Subject> {
  const primary = await RedisServer.start({ args: ['--repl-diskless-sync-delay', '0'] });
  const redis = new Redis(primary.url);
  const link = delay === undefined ? undefined : await relay(primary.port, delay);
  const replica = await RedisServer.start({ args: ['--replicaof', `127.0.0.1 ${link?.port ?? primary.port}`] });
  await eventually(async () => (await redis.info('replication')).includes('state=online'), { timeout: 20_000 });
  const context = await startStore({ url: primary.url, replicas });
  const stop = async () => {
    await context.stop();
    redis.disconnect();
    await Promise.all([replica.stop(), primary.stop()]);
    link?.stop();
  };
  return { name, context, redis, stop };
}

async function measure(store: StorePrimitives, redis: Redis, limit: number) {
  const ids = Array.from({ length: SAVES }, () => generateSessionKey().id);
  const timeouts = { maxInactiveInterval: 1800, absoluteTimeout: -1 };
  const create = (id: string) =>
    store.write({ kind: 'create', id, presentedIds: [], ...timeouts, attributes: ATTRIBUTES, indexes: NOTHING });
  await inFlight(ids, 64, create);
  const times: number[] = [];
  const before = await redisUsage(redis);
  const began = performance.now();
  await inFlight(ids, limit, async (id) => {
    const start = performance.now();
    await store.write({ kind: 'update', id, attributes: ATTRIBUTES, indexes: NOTHING });
    times.push(performance.now() - start);
  });
  const elapsed = performance.now() - began;
  const after = await redisUsage(redis);
  await inFlight(ids, 64, (id) => store.write({ kind: 'delete', id }));
  return {
    perSecond: (1000 * SAVES) / elapsed,
    median: quantile(times, 0.5),
    p99: quantile(times, 0.99),
    redisTime: (after.processorTime - before.processorTime) / SAVES,
  };
}

const subjects = [
  await start('replicas: 0', 0),
  await start('replicas: 1', 1),
  await start('replicas: 1, 2 ms to the replica and back', 1, 1),
];
const rows: string[][] = [];
for (const limit of CONCURRENCY) {
  const contenders = subjects.map(({ name, context, redis }) => ({
    name,
    measure: () => measure(context.store, redis, limit),
  }));
  const rounds = await interleave(contenders, ROUNDS, WARM_UP);
  for (const [i, { name }] of subjects.entries()) {
    const of = (figure: keyof (typeof rounds)[0][0], index = i) => rounds[index]!.map((round) => round[figure]);
    rows.push([
      `${limit}, ${name}`,
      number(medianOf(of('perSecond'))),
      ratio(of('perSecond'), of('perSecond', 0)),
      medianOf(of('median')).toFixed(2),
      medianOf(of('p99')).toFixed(2),
      number(medianOf(of('redisTime'))),
    ]);
  }
}
console.log(`Saves with and without WAIT; Node.js ${process.version}`);
console.log(table(['in flight', 'saves/s', 'ratio', 'ms', 'ms p99', 'Redis µs'], rows));
for (const subject of subjects) await subject.stop();
