import { generateSessionKey, type StorePrimitives } from '@nest-session/core/internal';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { redisUsage } from './redis.usage.js';
import { quantile } from './rounds.js';
import { inFlight, startStore } from './store.context.js';
import { simulateSweeps, type SweepPlan } from './sweep.simulation.js';
import { number, table } from './table.js';

// A simulation of the sweep with many more sessions than a machine holds, by the cost of a session in a claim that is
// measured here. `--write` records nothing: docs/scaling.md has the figures.
const SESSIONS = process.env.BENCH_QUICK ? 5000 : 20_000;
const BATCH = 50;

interface ClaimCost {
  /** Microseconds of Redis for a session that has ended, from its bucket to its event. */
  readonly ended: number;
  /** Microseconds of Redis for a session that was renewed, which moves to its right bucket. */
  readonly alive: number;
  /** Microseconds of the process that sweeps, the mean of both. */
  readonly process: number;
}

/** The cost of a session in a batch of its bucket, the read of the bucket included. */
async function measureClaims(): Promise<ClaimCost> {
  const server = await RedisServer.start();
  const redis = new Redis(server.url);
  const { store, sweep, stop } = await startStore({
    url: server.url,
    notifications: 'off',
    cleanup: { cron: '0 0 0 29 2 *' },
  });
  const claimed = async (end: (id: string) => Promise<unknown>) => {
    const ids = await createAll(store);
    await inFlight(ids, 64, end);
    const [before, process] = [await redisUsage(redis), globalThis.process.cpuUsage()];
    await sweep();
    const { user, system } = globalThis.process.cpuUsage(process);
    const redisTime = (await redisUsage(redis)).processorTime - before.processorTime;
    return { redis: redisTime / ids.length, process: (user + system) / ids.length };
  };
  const ended = await claimed((id) => redis.del(`nest:session:sessions:expires:${id}`));
  await redis.flushall();
  // A member that looks due: the sweep is told to look an hour ahead.
  const alive = await claimed(() => Promise.resolve());
  await stop();
  redis.disconnect();
  await server.stop();
  return { ended: ended.redis, alive: alive.redis, process: (ended.process + alive.process) / 2 };
}

async function createAll(store: StorePrimitives): Promise<string[]> {
  const ids = Array.from({ length: SESSIONS }, () => generateSessionKey().id);
  const attributes = new Map([['cart', JSON.stringify('x'.repeat(100))]]);
  const times = { maxInactiveInterval: 1800, absoluteTimeout: -1 };
  await inFlight(ids, 64, (id) =>
    store.write({ kind: 'create', id, presentedIds: [], ...times, attributes, indexes: new Map() }),
  );
  return ids;
}

const MILLION = 1_000_000;
const LARGE = { nodes: 48, partitions: 512, instances: 20 };
const PLANS: Record<string, Partial<SweepPlan>> = {
  '1 million: 1 partition, 1 node, 2 instances': { sessions: MILLION, partitions: 1, nodes: 1, instances: 2 },
  '10 million: 64 partitions, 6 nodes, 4 instances': { sessions: 10 * MILLION, partitions: 64, nodes: 6, instances: 4 },
  '100 million: 512 partitions, 48 nodes, 4 instances': { ...LARGE, instances: 4 },
  '100 million: 512 partitions, 48 nodes, 20 instances': LARGE,
  '100 million: 1024 partitions, 48 nodes, 100 instances': { ...LARGE, partitions: 1024, instances: 100 },
  '512 and 20, network of 2 ms to Redis': { ...LARGE, roundTrip: 2000 },
  '512 and 20, half of the instances die': { ...LARGE, deaths: 10 },
  '512 and 20, nothing sweeps for 10 minutes': { ...LARGE, pause: 10 },
};

const cost = await measureClaims();
console.log(
  `Per session in a claim: Redis ${cost.ended.toFixed(1)} µs ended, ${cost.alive.toFixed(1)} µs renewed; ` +
    `the process that sweeps ${cost.process.toFixed(1)} µs`,
);
const rows = Object.entries(PLANS).map(([name, plan]) => {
  const result = simulateSweeps({
    sessions: 100 * MILLION,
    ...LARGE,
    busy: 0.5,
    deaths: 0,
    pause: 0,
    batch: BATCH,
    roundTrip: 500,
    ...cost,
    ...plan,
  });
  return [
    name,
    number(result.visitsPerSecond),
    number(result.largestBucket),
    `${(100 * result.redisShare).toFixed(2)} %`,
    `${(100 * result.processShare).toFixed(1)} %`,
    quantile(result.lateness, 0.5).toFixed(1),
    quantile(result.lateness, 0.99).toFixed(1),
    quantile(result.lateness, 1).toFixed(1),
    `${result.behind} of ${result.lateness.length}`,
  ];
});
console.log(
  table(['sessions', 'visits/s', 'bucket', 'Redis', 'instance', 's, median', 's, p99', 's, longest', 'behind'], rows),
);
