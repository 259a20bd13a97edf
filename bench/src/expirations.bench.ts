import { setTimeout as sleep } from 'node:timers/promises';
import { BeanstalkdServer } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { generateSessionKey } from '@nest-session/core/internal';
import { Redis } from 'ioredis';
import { BenchServer } from './bench.server.js';
import { WAYS } from './expirations.applications.js';
import { expirationsReport } from './expirations.report.js';
import { redisUsage } from './redis.usage.js';
import { type Comparison, isQuick, writeResults } from './results.js';
import { quantile } from './rounds.js';
import { inFlight, startStore } from './store.context.js';

/** Live sessions, which Redis has to look at to find those that have expired. */
const AMOUNTS = isQuick ? [20_000] : [100_000];
/** So many sessions end in the course of a minute. */
const ENDING = isQuick ? 2000 : 12_000;
const REST = isQuick ? 5 : 20;
const MINUTE = 60;
/** Seconds after the last end. What is not noticed by then counts as noticed then. */
const PATIENCE = 120;

/** The server of a timer. */
interface TimerServer {
  readonly port: number;
  stop(): Promise<void>;
}

interface Contender {
  readonly name: string;
  readonly server: RedisServer;
  readonly redis: Redis;
  /** Of the sessions that live on. */
  bytes: number;
  readonly timer: TimerServer | undefined;
  application?: BenchServer;
}

async function startTimerOf(name: string): Promise<TimerServer | undefined> {
  const kind = WAYS[name]?.timer;
  if (kind === undefined) return undefined;
  if (kind === 'redis') {
    const server = await RedisServer.start();
    return { port: server.port, stop: () => server.stop() };
  }
  const server = await BeanstalkdServer.start();
  return { port: server.port, stop: () => server.kill() };
}

async function create(contender: Contender, intervals: Iterable<number>): Promise<Map<string, number>> {
  const { expirations = 'buckets' } = WAYS[contender.name]?.options(contender.timer?.port ?? 0) ?? {};
  const options = { notifications: 'off', cleanup: { cron: '0 0 0 29 2 *' } } as const;
  const { store, stop } = await startStore({ url: contender.server.url, ...options, expirations });
  const attributes = new Map([['cart', JSON.stringify({ items: ['A-1001'], note: 'x'.repeat(70) })]]);
  const ends = new Map<string, number>();
  await inFlight([...intervals], 64, async (maxInactiveInterval) => {
    const { id } = generateSessionKey();
    const times = { presentedIds: [], maxInactiveInterval, absoluteTimeout: -1 };
    const reply = await store.write({ kind: 'create', id, ...times, attributes, indexes: new Map() });
    if (reply.outcome !== 'created') throw new Error(`A session was not created: ${reply.outcome}`);
    ends.set(id, reply.creationTime + 1000 * maxInactiveInterval);
  });
  // No request waits for a timer: the last sessions may still be on their way to it.
  await sleep(1000);
  await stop();
  return ends;
}

async function open(name: string, amount: number): Promise<Contender> {
  const server = await RedisServer.start();
  const redis = new Redis(server.url);
  const timer = await startTimerOf(name);
  const contender: Contender = { name, server, redis, timer, bytes: 0 };
  // Nobody wants creations, so none is recorded.
  await redis.hset('nest:session:events:wanted', 'default', 'expired');
  [, version] = /redis_version:(\S+)/.exec(await redis.info('server')) ?? [];
  const before = await usedMemory(redis);
  await create(
    contender,
    Array.from({ length: amount }, () => 4 * 3600),
  );
  contender.bytes = ((await usedMemory(redis)) - before) / amount;
  if (WAYS[name])
    contender.application = await BenchServer.start('expirations', server.url, name, `${timer?.port ?? 0}`);
  return contender;
}

async function close({ server, redis, timer, application }: Contender): Promise<void> {
  application?.stop();
  redis.disconnect();
  await Promise.all([server.stop(), timer?.stop()]);
}

/** The contenders side by side, with one that nobody looks at. */
async function compare(names: readonly string[], amount: number): Promise<Comparison> {
  const all: Contender[] = [];
  for (const name of [...names, 'nobody']) all.push(await open(name, amount));
  await sleep(5000);
  const control = all.pop()!;
  const spentBy = async (some: readonly Contender[]) =>
    Promise.all(some.map(async ({ redis }) => (await redisUsage(redis)).processorTime));
  const [begun, ...before] = await spentBy([control, ...all]);
  await sleep(1000 * REST);
  const [idle, ...rested] = await spentBy([control, ...all]);
  // From 10 s after all are there, over a minute.
  const intervals = Array.from({ length: ENDING }, (_, n) => 10 + Math.floor((n * MINUTE) / ENDING));
  await create(control, intervals);
  const [created] = await spentBy([control]);
  const contenders = await Promise.all(
    all.map(async (each, n) => {
      const atRest = Math.max(0, (rested[n]! - before[n]! - (idle! - begun!)) / REST);
      const from = performance.now();
      const { lags, noticed } = await noticedOf(each, await create(each, intervals));
      const late = lags.map((milliseconds) => milliseconds / 1000);
      const [own, others] = (await spentBy([each, control])) as [number, number];
      const seconds = (performance.now() - from) / 1000;
      // The control has created as many sessions before, and its Redis has as much to do by itself.
      const spent = own - rested[n]! - (created! - idle!) - (others - created!) - seconds * atRest;
      const figures = {
        noticed: [noticed],
        p50: [quantile(late, 0.5)],
        p99: [quantile(late, 0.99)],
        max: [quantile(late, 1)],
        perEnd: [spent / ENDING],
        atRest: [atRest],
        bytes: [each.bytes],
      };
      return { name: each.name, figures };
    }),
  );
  all.push(control);
  await Promise.all(all.map(close));
  return { title: amount.toLocaleString('en'), contenders };
}

/** Milliseconds from the end of each session to its record, by the clock of Redis, and the share that was recorded. */
async function noticedOf(
  { redis }: Contender,
  ends: ReadonlyMap<string, number>,
): Promise<{ readonly lags: number[]; readonly noticed: number }> {
  const deadline = Math.max(...ends.values()) + 1000 * PATIENCE;
  const recorded = new Map<string, number>();
  let last = '-';
  for (;;) {
    for (const [position, [, , , id, , at]] of await redis.xrange('nest:session:events', last, '+')) {
      recorded.set(id!, Number(at));
      last = `(${position}`;
    }
    const [seconds] = await redis.time();
    if (recorded.size >= ends.size || Number(seconds) * 1000 > deadline) break;
    await sleep(1000);
  }
  const lags = [...ends].map(([id, end]) => (recorded.get(id) ?? deadline) - end);
  return { lags, noticed: recorded.size / ends.size };
}

async function usedMemory(redis: Redis): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);
}

let version: string | undefined;
const comparisons: Comparison[] = [];
for (const amount of AMOUNTS) comparisons.push(await compare(Object.keys(WAYS), amount));
console.log(expirationsReport(await writeResults('expirations', comparisons, version)));
