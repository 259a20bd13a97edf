import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { RedisServer } from '@nest-session/testing';
import { generateSessionKey } from '@nest-session/core/internal';
import { Redis } from 'ioredis';
import { BenchServer } from './bench.server.js';
import { expiryReport } from './expiry.report.js';
import { redisUsage } from './redis.usage.js';
import { type Comparison, isQuick, writeResults } from './results.js';
import { quantile } from './rounds.js';
import { inFlight, startStore } from './store.context.js';

const AMOUNTS = isQuick ? [100_000] : [100_000, 1_000_000];
const PROCESSES = 2;
const BUSY = fileURLToPath(new URL('./busy.main.js', import.meta.url));
const MINUTE = 60_000;
/** All sessions end this long before the minute of their bucket. */
const LEAD = 5_000;
/** How many sessions a slow machine creates in a millisecond. */
const SLOWEST = 8;
const PATIENCE = 600_000;

/** So many sessions that end in the same second. Resolves to the minute of their bucket, by the clock of Redis. */
async function fill(url: string, redis: Redis, amount: number): Promise<number> {
  const { store, stop } = await startStore({ url });
  const ids = Array.from({ length: amount }, () => generateSessionKey().id);
  const now = await timeOf(redis);
  const minute = Math.ceil((now + LEAD + 5_000 + amount / SLOWEST) / MINUTE) * MINUTE;
  const attributes = new Map([['cart', JSON.stringify({ items: ['A-1001'], note: 'x'.repeat(70) })]]);
  const began = performance.now();
  await inFlight(ids, 64, async (id) => {
    const left = minute - LEAD - (now + performance.now() - began);
    if (left < 2_000) throw new Error('This machine is too slow to create the sessions before they end');
    const maxInactiveInterval = Math.floor(left / 1000);
    const reply = await store.write({
      kind: 'create',
      id,
      presentedIds: [],
      maxInactiveInterval,
      absoluteTimeout: -1,
      attributes,
      indexes: new Map(),
    });
    if (reply.outcome !== 'created') throw new Error(`A session was not created: ${reply.outcome}`);
  });
  await stop();
  const found = await redis.scard(bucketOf(minute));
  if (found !== amount) throw new Error(`The bucket has ${found} sessions instead of ${amount}`);
  return minute;
}

type Figures = Record<string, number[]>;

interface Watched {
  readonly pings: number[];
  readonly redisTime: number;
  /** When it was over, by the clock of Redis. */
  readonly end: number;
}

/** Waits until a second before the sessions end. Resolves to that time. */
async function shortlyBefore(redis: Redis, minute: number): Promise<number> {
  const from = minute - LEAD - 1_000;
  await sleep(Math.max(0, from - (await timeOf(redis))));
  return from;
}

/** Sends one PING after the other until it is over. */
async function watch(redis: Redis, isOver: () => Promise<boolean>): Promise<Watched> {
  const before = await redisUsage(redis);
  const pings: number[] = [];
  const deadline = Date.now() + PATIENCE;
  let end = 0;
  for (let n = 0; end === 0; n++) {
    const sent = performance.now();
    await redis.ping();
    pings.push(performance.now() - sent);
    await sleep(2);
    if (n % 100 === 99 && (await isOver())) end = await timeOf(redis);
    if (Date.now() > deadline) throw new Error('The expiries were not handled in time');
  }
  const after = await redisUsage(redis);
  return { pings, redisTime: after.processorTime - before.processorTime, end };
}

/**
 * The same sessions end, and nobody looks for them. It takes as long as the run with processes: most keys expire in a
 * burst, and the longer the quiet time after it, the lower is the quantile of all PINGs.
 * @param shares of a processor: a program for each of them works meanwhile, the first one like Redis
 */
async function control(amount: number, seconds: number, shares: readonly number[] = []): Promise<Figures> {
  return withRedis(async (server, redis) => {
    const minute = await fill(server.url, redis, amount);
    await shortlyBefore(redis, minute);
    const programs = shares.map((share) => fork(BUSY, [`${share}`]));
    const watched = await watch(redis, async () => (await timeOf(redis)) >= minute + 1000 * seconds);
    const callsOver3ms = await Promise.all(programs.slice(0, 1).map(longBursts));
    for (const each of programs) each.disconnect();
    const expired = Number(/^expired_keys:(\d+)/m.exec(await redis.info('stats'))?.[1]);
    return { ...figuresOf(amount, minute, watched), callsOver3ms, expired: [expired / amount] };
  });
}

async function longBursts(program: ChildProcess): Promise<number> {
  program.send('?');
  const [count] = (await once(program, 'message')) as [number];
  return count;
}

/** Also the shares of a processor that Redis and the processes took. */
async function withProcesses(amount: number): Promise<{ readonly figures: Figures; readonly shares: number[] }> {
  return withRedis(async (server, redis) => {
    const starting = Array.from({ length: PROCESSES }, () => BenchServer.start('expiry', server.url));
    const processes = await Promise.all(starting);
    const minute = await fill(server.url, redis, amount);
    await redis.call('CLIENT', 'SETNAME', 'bench');
    await redis.config('SET', 'slowlog-max-len', 100_000, 'slowlog-log-slower-than', 1000);
    // Those of the creation.
    await redis.slowlog('RESET');
    const times = () => Promise.all(processes.map((each) => each.processorTime()));
    const from = await shortlyBefore(redis, minute);
    const before = await times();
    const watched = await watch(redis, () => isHandled(redis, minute));
    const used = (await times()).map((time, i) => time - before[i]!);
    const slow = (await redis.slowlog('GET', -1)) as [number, number, number, string[], string, string][];
    for (const each of processes) each.stop();
    // What measures has a name.
    const calls = slow.filter(([, , , , , name]) => name !== 'bench').map(([, , microseconds]) => microseconds / 1000);
    const figures = {
      ...figuresOf(amount, minute, watched),
      slowestCall: [Math.max(1, ...calls)],
      callsOver3ms: [calls.filter((milliseconds) => milliseconds > 3).length],
    };
    return { figures, shares: [watched.redisTime, ...used].map((time) => time / 1000 / (watched.end - from)) };
  });
}

function figuresOf(amount: number, minute: number, { pings, redisTime, end }: Watched): Figures {
  return {
    seconds: [(end - minute) / 1000],
    sinceEnd: [(end - minute + LEAD) / 1000],
    redisTime: [redisTime / amount],
    pingP99: [quantile(pings, 0.99)],
    pingMax: [quantile(pings, 1)],
  };
}

/** Whether every session of the bucket was claimed, and every event that was recorded is acknowledged. */
async function isHandled(redis: Redis, minute: number): Promise<boolean> {
  if ((await redis.exists(bucketOf(minute))) === 1) return false;
  const stream = toMap(await redis.xinfo('STREAM', 'nest:session:events'));
  const groups = (await redis.xinfo('GROUPS', 'nest:session:events')) as unknown[];
  return groups.map(toMap).every((group) => {
    return group.get('pending') === 0 && group.get('last-delivered-id') === stream.get('last-generated-id');
  });
}

function bucketOf(minute: number): string {
  return `nest:session:expirations:${minute}`;
}

/** A reply that lists names and values in turn. */
function toMap(reply: unknown): Map<unknown, unknown> {
  const list = reply as unknown[];
  return new Map(Array.from({ length: list.length / 2 }, (_, n) => [list[2 * n], list[2 * n + 1]]));
}

async function withRedis<T>(run: (server: RedisServer, redis: Redis) => Promise<T>): Promise<T> {
  const server = await RedisServer.start();
  const redis = new Redis(server.url);
  try {
    [, version] = /redis_version:(\S+)/.exec(await redis.info('server')) ?? [];
    return await run(server, redis);
  } finally {
    redis.disconnect();
    await server.stop();
  }
}

async function timeOf(redis: Redis): Promise<number> {
  const [seconds, microseconds] = (await redis.time()).map(Number) as [number, number];
  return seconds * 1000 + microseconds / 1000;
}

let version: string | undefined;
const comparisons: Comparison[] = [];
for (const amount of AMOUNTS) {
  const { figures, shares } = await withProcesses(amount);
  const seconds = figures['seconds']![0]!;
  const contenders = [
    { name: 'nest-session', figures },
    { name: 'control', figures: await control(amount, seconds) },
    { name: 'busy control', figures: await control(amount, seconds, shares) },
  ];
  comparisons.push({ title: amount.toLocaleString('en'), contenders });
}
console.log(expiryReport(await writeResults('expiry', comparisons, version)));
