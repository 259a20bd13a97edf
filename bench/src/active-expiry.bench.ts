import { setTimeout as sleep } from 'node:timers/promises';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { activeExpiryReport } from './active-expiry.report.js';
import { type Comparison, isQuick, writeResults } from './results.js';
import { quantile } from './rounds.js';

// How long a Redis that nobody asks takes to notice that keys have expired: what key events alone depend on.

const AMOUNTS = isQuick ? [10_000] : [100_000, 1_000_000];
const SECOND = 1000;
const MINUTE = isQuick ? 2 * SECOND : 60 * SECOND;
/** The time to live of a key, where others take its place. */
const LIFE = 30 * MINUTE;
/** The time to live of those that stay meanwhile. */
const LONG = 10 * 60 * MINUTE;
/** From then on, and for so long, the ends count: by then as many expired keys wait as ever will. */
const [FROM, DURING] = [8 * MINUTE, 5 * MINUTE];
/** The last end that counts is watched for so long. */
const PATIENCE = 15 * MINUTE;
const BATCH = 1000;

interface Scenario {
  readonly title: string;
  /** Milliseconds until the n-th of so many keys expires. */
  lifeOf(n: number, amount: number): number;
  /** The number of keys that begin each second, with a life of `LIFE`. */
  begun(amount: number): number;
}

const SCENARIOS: readonly Scenario[] = [
  {
    title: 'each lives for 30 minutes, and as many begin as end',
    lifeOf: (n, amount) => Math.ceil((LIFE * (n + 1)) / amount),
    begun: (amount) => (amount * SECOND) / LIFE,
  },
  {
    title: 'one in a hundred ends within five minutes, the others live on',
    lifeOf: (n, amount) => (n % 100 === 0 ? FROM + Math.ceil((DURING * n) / amount) : LONG),
    begun: () => 0,
  },
];

/** Keys that are named by the time of their end, in epoch milliseconds. */
class WatchedKeys {
  readonly lags: number[] = [];
  /** Of those that count. */
  ending = 0;
  #count = 0;

  private constructor(
    private readonly server: RedisServer,
    private readonly redis: Redis,
    private readonly subscriber: Redis,
    private readonly scenario: Scenario,
    private readonly amount: number,
  ) {}

  static async open(scenario: Scenario, amount: number): Promise<WatchedKeys> {
    const server = await RedisServer.start();
    const [redis, subscriber] = [new Redis(server.url), new Redis(server.url)];
    await redis.config('SET', 'notify-keyspace-events', 'Ex');
    return new WatchedKeys(server, redis, subscriber, scenario, amount);
  }

  /** Resolves when the last end that counts was watched for long enough. */
  async run(): Promise<void> {
    const begin = Date.now() + (this.amount / 10_000) * SECOND;
    const [from, to] = [begin + FROM, begin + FROM + DURING];
    const counts = (end: number) => end >= from && end < to;
    this.subscriber.on('message', (_channel: string, key: string) => {
      const end = Number(key.split(':')[1]);
      // The clock of both is that of the machine.
      if (counts(end)) this.lags.push(Date.now() - end);
    });
    await this.subscriber.subscribe('__keyevent@0__:expired');
    for (let n = 0; n < this.amount; n += BATCH) {
      const ends = Array.from({ length: BATCH }, (_, i) => begin + this.scenario.lifeOf(n + i, this.amount));
      this.ending += ends.filter(counts).length;
      await this.#set(ends);
    }
    if (Date.now() > begin) console.error(`${this.amount} keys took ${Date.now() - begin} ms too long`);
    await sleep(Math.max(0, begin - Date.now()));
    for (let done = 0; Date.now() < to + PATIENCE; await sleep(100)) {
      const now = Date.now();
      const due = Math.floor((this.scenario.begun(this.amount) * (now - begin)) / SECOND);
      if (due > done) await this.#set(Array.from({ length: due - done }, () => now + LIFE));
      done = due;
    }
  }

  figures(): Record<string, number[]> {
    // What was not noticed is later than all others.
    const late = [...this.lags, ...Array.from({ length: this.ending - this.lags.length }, () => Infinity)];
    const [p50, p99] = [quantile(late, 0.5) / SECOND, quantile(late, 0.99) / SECOND];
    return {
      ending: [this.ending],
      within: [late.filter((lag) => lag <= MINUTE).length / this.ending],
      noticed: [this.lags.length / this.ending],
      patience: [PATIENCE / MINUTE],
      ...(p50 < Infinity && { p50: [p50] }),
      ...(p99 < Infinity && { p99: [p99] }),
    };
  }

  async version(): Promise<string | undefined> {
    return /redis_version:(\S+)/.exec(await this.redis.info('server'))?.[1];
  }

  async close(): Promise<void> {
    this.redis.disconnect();
    this.subscriber.disconnect();
    await this.server.stop();
  }

  async #set(ends: readonly number[]): Promise<void> {
    const pipeline = this.redis.pipeline();
    for (const end of ends) pipeline.set(`${this.#count++}:${end}`, '', 'PXAT', end);
    await pipeline.exec();
  }
}

if (isQuick) console.log('A minute is two seconds long here.');
const all = await Promise.all(
  SCENARIOS.flatMap((scenario) =>
    AMOUNTS.map(async (amount) => ({ scenario, amount, keys: await WatchedKeys.open(scenario, amount) })),
  ),
);
await Promise.all(all.map(({ keys }) => keys.run()));
const version = await all[0]!.keys.version();
const comparisons: Comparison[] = SCENARIOS.map(({ title }) => ({
  title,
  contenders: all
    .filter(({ scenario }) => scenario.title === title)
    .map(({ amount, keys }) => ({ name: amount.toLocaleString('en'), figures: keys.figures() })),
}));
await Promise.all(all.map(({ keys }) => keys.close()));
console.log(activeExpiryReport(await writeResults('active-expiry', comparisons, version)));
