import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type Session, SessionModule } from '@nest-session/core';
import { RedisSessionModule, RedisSessionRepository } from '@nest-session/redis';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { BareCommands } from './repository.bare.js';
import { type Contender, runRounds } from './rounds.js';

// What the operations of the repository cost beside the least commands that could do the same. After `npm run bench` has
// built it: node bench/dist/repository.bench.js --only load --concurrency 16

const { values: flags } = parseArgs({
  options: {
    /** Only operations whose name contains this text. */
    only: { type: 'string', default: '' },
    rounds: { type: 'string', default: '15' },
    calls: { type: 'string', default: '2000' },
    concurrency: { type: 'string', multiple: true, default: ['1', '16'] },
  },
});
const ROUNDS = Number(flags.rounds);
const WARM_UP = 4;
const CALLS = Number(flags.calls);
const PRINCIPALS = 100;
const SESSIONS_EACH = 10;

/** A way to do an operation. `prepare`: what it does before each measurement, which does not count. */
interface Way {
  readonly prepare?: (calls: number) => Promise<void>;
  readonly call: (i: number) => Promise<unknown>;
}

interface Operation {
  readonly name: string;
  readonly bare: Way;
  readonly ours: Way;
  /** @default 1: the calls that count, as a part of all */
  readonly share?: number;
}

interface Usage {
  readonly redis: number;
  readonly commands: number;
}

/** Measures one way of an operation, with a number of calls in flight. */
class Measurement implements Contender {
  readonly usages: Usage[] = [];
  readonly rates: number[] = [];

  constructor(
    readonly name: string,
    private readonly way: Way,
    private readonly calls: number,
    private readonly inFlight: number,
    private readonly observer: Redis,
  ) {}

  /** The microseconds of processor time of this process for a call. */
  async measure(): Promise<number> {
    await this.way.prepare?.(this.calls);
    const before = await this.#redisUsage();
    const [start, cpu] = [performance.now(), process.cpuUsage()];
    let next = 0;
    const work = async () => {
      while (next < this.calls) await this.way.call(next++);
    };
    await Promise.all(Array.from({ length: this.inFlight }, work));
    const { user, system } = process.cpuUsage(cpu);
    this.rates.push((this.calls / (performance.now() - start)) * 1000);
    const after = await this.#redisUsage();
    this.usages.push({
      redis: (after.redis - before.redis) / this.calls,
      // Without the INFO that was asked in between.
      commands: (after.commands - before.commands - 1) / this.calls,
    });
    return (user + system) / this.calls;
  }

  /** Microseconds of processor time, and commands, those of scripts included. */
  async #redisUsage(): Promise<Usage> {
    const info = await this.observer.info('everything');
    const seconds = (name: string) => Number(new RegExp(`^${name}:(.*)$`, 'm').exec(info)![1]);
    const counts = [...info.matchAll(/^cmdstat_[^:]+:calls=(\d+)/gm)].map(([, count]) => Number(count));
    return {
      redis: (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1e6,
      commands: counts.reduce((sum, count) => sum + count, 0),
    };
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[values.length >> 1]!;
}

@Module({})
class BenchModule {}

const server = await RedisServer.start({ args: ['--save', ''] });
const observer = new Redis(server.url);
const client = new Redis(server.url, { socketTimeout: 2000 });
const bare = new BareCommands(client, 'bare:');
// Reads what the repository reads.
const reader = new BareCommands(client, 'nest:session:');
const app = await NestFactory.createApplicationContext(
  {
    module: BenchModule,
    imports: [
      SessionModule.forRoot(),
      RedisSessionModule.forRoot({ url: server.url, notifications: 'off', events: { consume: false } }),
    ],
  },
  { logger: ['error', 'warn'] },
);
const sessions = app.get(RedisSessionRepository, { strict: false });

const attributes = Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`attribute${i}`, 'x'.repeat(98)]));
const texts = Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, JSON.stringify(value)]));

async function open(principal?: string): Promise<Session> {
  const session = sessions.createSession();
  for (const [name, value] of Object.entries(attributes)) session.setAttribute(name, value);
  if (principal !== undefined) session.principalName = principal;
  await session.save();
  return session;
}

async function times<T>(count: number, make: (i: number) => Promise<T>): Promise<T[]> {
  const made: T[] = [];
  while (made.length < count) {
    const batch = Array.from({ length: Math.min(100, count - made.length) }, (_, i) => make(made.length + i));
    made.push(...(await Promise.all(batch)));
  }
  return made;
}

const POOL = PRINCIPALS * SESSIONS_EACH;
const principalOf = (i: number) => `user${i % PRINCIPALS}`;
const ours = await times(POOL, (i) => open(principalOf(i)));
const theirs = await times(POOL, () => bare.create(texts));
// Sessions of no principal, for what a bare script does not do.
const plain = await times(POOL, () => open());
let plainIds = await times(POOL, () => bare.create(texts));
let doomed: Session[] = [];
let doomedIds: string[] = [];
const valueOf = (i: number) => `${i}`.padStart(98, 'y');
const textOf = (i: number) => JSON.stringify(valueOf(i));

const operations: readonly Operation[] = [
  {
    name: 'load',
    bare: { call: (i) => reader.load(ours[i % POOL]!.id) },
    ours: { call: (i) => sessions.findById(ours[i % POOL]!.id) },
  },
  {
    name: '10 sessions of a principal',
    share: 0.1,
    bare: { call: (i) => reader.findByPrincipalName(principalOf(i)) },
    ours: { call: (i) => sessions.findByPrincipalName(principalOf(i)) },
  },
  {
    name: 'touch',
    bare: { call: (i) => bare.touch(theirs[i % POOL]!) },
    ours: { call: (i) => sessions.touch(plain[i % POOL]!) },
  },
  {
    name: 'save one of eight',
    bare: { call: (i) => bare.save(theirs[i % POOL]!, 'attribute3', textOf(i)) },
    ours: {
      call: (i) => {
        const session = plain[i % POOL]!;
        session.setAttribute('attribute3', valueOf(i + (Date.now() % 1e6)));
        return session.save();
      },
    },
  },
  { name: 'create', bare: { call: () => bare.create(texts) }, ours: { call: () => open() } },
  {
    name: 'change id',
    share: 0.5,
    bare: { call: async (i) => (plainIds[i % POOL] = await bare.changeId(plainIds[i % POOL]!)) },
    ours: {
      call: (i) => {
        const session = plain[i % POOL]!;
        session.changeSessionId();
        return session.save();
      },
    },
  },
  {
    name: 'delete',
    bare: {
      prepare: async (calls) => void (doomedIds = await times(calls, () => bare.create(texts))),
      call: (i) => bare.delete(doomedIds[i]!),
    },
    ours: {
      prepare: async (calls) => void (doomed = await times(calls, () => open())),
      call: (i) => sessions.deleteById(doomed[i]!.id),
    },
  },
];

const { version } = /redis_version:(?<version>\S+)/.exec(await observer.info('server'))!.groups!;
console.log(`Node.js ${process.version}, Redis ${version}, ${cpus().length} x ${cpus()[0]?.model}`);
const head = ['in flight', 'calls/s', 'Node us', 'ratio', 'middle half', 'Redis us', 'ratio', 'commands'];
console.log(['operation'.padEnd(34), ...head.map((title) => title.padStart(12))].join(''));
for (const { name, share = 1, ...ways } of operations.filter((each) => each.name.includes(flags.only))) {
  for (const inFlight of flags.concurrency.map(Number)) {
    const contenders = [
      new Measurement(`${name}, bare`, ways.bare, CALLS * share, inFlight, observer),
      new Measurement(name, ways.ours, CALLS * share, inFlight, observer),
    ];
    const results = await runRounds(contenders, ROUNDS, WARM_UP);
    const redis = contenders.map(({ usages }) => median(usages.slice(WARM_UP).map((usage) => usage.redis)));
    for (const [i, { value, ratio, spread }] of results.entries()) {
      const { rates, usages } = contenders[i]!;
      const figures = [
        `${inFlight}`,
        median(rates.slice(WARM_UP)).toFixed(0),
        value.toFixed(1),
        ratio.toFixed(2),
        spread.map((each) => each.toFixed(2)).join(' - '),
        redis[i]!.toFixed(1),
        (redis[i]! / redis[0]!).toFixed(2),
        median(usages.slice(WARM_UP).map((usage) => usage.commands)).toFixed(1),
      ];
      console.log([contenders[i]!.name.padEnd(34), ...figures.map((figure) => figure.padStart(12))].join(''));
    }
  }
}

await app.close();
client.disconnect();
observer.disconnect();
await server.stop();
