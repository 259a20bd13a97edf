import { setTimeout as sleep } from 'node:timers/promises';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { deadlinesReport } from './deadlines.report.js';
import { CONTENDERS, type DeadlineContender, type StartContender } from './deadlines.contenders.js';
import { redisUsage } from './redis.usage.js';
import { byFigure, type Comparison, isQuick, writeResults } from './results.js';
import { interleave, quantile } from './rounds.js';
import { inFlight } from './store.context.js';

const AT_A_TIME = 16;
const ROUNDS = isQuick ? 5 : 15;
const WARM_UP = 1;
const BATCH = isQuick ? 1000 : 5000;
/** How many are due in a second, and for how many seconds. */
const RATE = 1000;
const SECONDS = isQuick ? 10 : 30;
/** How many others wait meanwhile. */
const WAITING = [0, isQuick ? 100_000 : 1_000_000];
const FILLED_AT_ONCE = 500;
const DAY = 86_400_000;
const DATA = { order: 'A-1001', total: 4200, note: 'x'.repeat(50) };

interface Opened {
  readonly name: string;
  readonly contender: DeadlineContender;
  readonly server: RedisServer;
  readonly redis: Redis;
}

let keys = 0;
const someKeys = (count: number) => Array.from({ length: count }, () => `order-${(keys += 1)}`);

async function open(name: string, start: StartContender): Promise<Opened> {
  const server = await RedisServer.start();
  return { name, server, redis: new Redis(server.url), contender: await start(server.url) };
}

async function close({ contender, redis, server }: Opened): Promise<void> {
  await contender.stop();
  redis.disconnect();
  await server.stop();
}

/** Schedules many that are far away, and cancels them: what a second does, and what Redis and Node spend on each. */
async function measureCalls({ contender, redis }: Opened) {
  const some = someKeys(BATCH);
  const timed = async (act: (key: string) => Promise<unknown>) => {
    const before = (await redisUsage(redis)).processorTime;
    const begun = performance.now();
    const nodeBefore = process.cpuUsage();
    await inFlight(some, AT_A_TIME, act);
    const node = process.cpuUsage(nodeBefore);
    const seconds = (performance.now() - begun) / 1000;
    const spent = (await redisUsage(redis)).processorTime - before;
    return { perSecond: BATCH / seconds, spent: spent / BATCH, node: (node.user + node.system) / BATCH };
  };
  const scheduled = await timed((key) => contender.schedule(key, DAY, DATA));
  const cancelled = await timed((key) => contender.cancel(key));
  return {
    scheduled: scheduled.perSecond,
    scheduleTime: scheduled.spent,
    scheduleNodeTime: scheduled.node,
    cancelled: cancelled.perSecond,
    cancelTime: cancelled.spent,
    cancelNodeTime: cancelled.node,
  };
}

async function usedMemory(redis: Redis): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);
}

/** Adds deadlines of the next days. Resolves to the bytes that each takes. */
async function fill({ contender, redis }: Opened, count: number): Promise<number> {
  const before = await usedMemory(redis);
  for (let i = 0; i < count; i += FILLED_AT_ONCE)
    await contender.fill(someKeys(Math.min(FILLED_AT_ONCE, count - i)), DAY + i, DATA);
  return ((await usedMemory(redis)) - before) / count;
}

/** Milliseconds from the time of each to the call of its handler: all clocks are those of this machine. */
async function lateness({ contender, redis }: Opened) {
  const count = RATE * SECONDS;
  const begin = Date.now() + 5000 + SECONDS * 500;
  const dues = new Map(someKeys(count).map((key, i) => [key, begin + Math.floor((i * 1000) / RATE)]));
  const late: number[] = [];
  contender.onHandled((key) => {
    const due = dues.get(key);
    if (due !== undefined) late.push(Date.now() - due);
  });
  await inFlight([...dues], AT_A_TIME, ([key, due]) => contender.schedule(key, due - Date.now(), DATA));
  if (Date.now() > begin) throw new Error('It took too long to schedule them');
  await sleep(begin - Date.now());
  const before = (await redisUsage(redis)).processorTime;
  const patience = begin + 1000 * SECONDS + 60_000;
  while (late.length < count && Date.now() < patience) await sleep(100);
  const spent = (await redisUsage(redis)).processorTime - before;
  if (late.length === 0) throw new Error('Nothing was handled');
  return {
    handled: [late.length / count],
    p50: [quantile(late, 0.5)],
    p99: [quantile(late, 0.99)],
    max: [quantile(late, 1)],
    fireTime: [spent / count],
  };
}

async function compareCalls(): Promise<Comparison> {
  const all: Opened[] = [];
  for (const [name, start] of Object.entries(CONTENDERS)) all.push(await open(name, start));
  const rounds = await interleave(
    all.map((each) => ({ name: each.name, measure: () => measureCalls(each) })),
    ROUNDS,
    WARM_UP,
  );
  const contenders = all.map(({ name }, i) => ({ name, figures: byFigure(rounds[i]!) }));
  await Promise.all(all.map(close));
  return { title: 'calls', contenders };
}

/** One after the other: they would be late because of each other. */
async function compareLateness(waiting: number): Promise<Comparison> {
  const contenders = [];
  for (const [name, start] of Object.entries(CONTENDERS)) {
    const opened = await open(name, start);
    const bytes = waiting > 0 ? [await fill(opened, waiting)] : [];
    contenders.push({ name, figures: { bytes, ...(await lateness(opened)) } });
    await close(opened);
  }
  return { title: waiting.toLocaleString('en'), contenders };
}

const comparisons = [await compareCalls()];
for (const waiting of WAITING) comparisons.push(await compareLateness(waiting));
console.log(deadlinesReport(await writeResults('deadlines', comparisons)));
