import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import type { SessionScripts } from '../../packages/session-redis/dist/scripts/session/session.scripts.js';
import type { SessionPartitions } from '../../packages/session-redis/dist/keys/session-partitions.js';
import { bareScripts, type BareName } from './scripts.bare.js';
import { type Contender, printTable, runRounds } from './rounds.js';

// What the scripts of a session cost Redis, beside scripts that do the least:
//   npm run build && npx tsc -b bench && node bench/dist/scripts.bench.js
// With the `dist` folder of another build of session-redis as an argument, its scripts run in the same rounds.

const SESSIONS = 2000;
const IN_FLIGHT = 16;
const ROUNDS = 9;
const WARM_UP = 2;
const RULES = { grace: 300_000, retention: 3_600_000, deadLetters: 10_000 };
const DAY = 86_400;
const ATTRIBUTES = new Map(Array.from({ length: 8 }, (_, i) => [`attribute${i}`, JSON.stringify('x'.repeat(98))]));
const OPERATIONS: readonly BareName[] = ['save', 'touch', 'create', 'changeId', 'delete'];

interface Build {
  readonly name: string;
  readonly scripts: SessionScripts;
  readonly partitions: SessionPartitions;
}

const newId = () => randomBytes(32).toString('base64url');

/** On a connection of its own, because a connection has one script of each name. */
async function load(name: string, dist: string, url: string): Promise<Build> {
  const at = (file: string) => import(pathToFileURL(resolve(dist, file)).href);
  const { SessionScripts: Scripts } = await at('scripts/session/session.scripts.js');
  const { SessionPartitions: Partitions } = await at('keys/session-partitions.js');
  const partitions = new Partitions('nest:session') as SessionPartitions;
  return { name, partitions, scripts: new Scripts(new Redis(url), partitions, RULES) as SessionScripts };
}

function creation(id: string, indexes = new Map<string, string>()): Parameters<SessionScripts['create']>[0] {
  const times = { maxInactiveInterval: 1800, absoluteTimeout: DAY };
  return { kind: 'create', id, presentedIds: [], ...times, attributes: ATTRIBUTES, indexes };
}

function callsOf({ scripts }: Build): Record<BareName, (id: string) => Promise<unknown>> {
  const update = { kind: 'update', indexes: new Map() } as const;
  return {
    save: (id) => scripts.save({ ...update, id, attributes: new Map([['attribute3', newId().repeat(2)]]) }),
    touch: (id) => scripts.touch(id),
    create: (id) => scripts.create(creation(id)),
    changeId: (id) => scripts.save({ ...update, id, newId: newId(), attributes: new Map() }),
    delete: (id) => scripts.delete(id),
  };
}

/** Calls for each id, a few in flight. */
async function inFlight(ids: readonly string[], call: (id: string) => Promise<unknown>): Promise<void> {
  const left = ids.values();
  const work = async () => {
    for (const id of left) await call(id);
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, work));
}

/** Microseconds that Redis spends in a script, for each call. */
async function timeOf(client: Redis, run: () => Promise<void>): Promise<number> {
  await client.config('RESETSTAT');
  await run();
  const stats = await client.info('commandstats');
  const [, calls, usec] = /^cmdstat_evalsha:calls=(\d+),usec=(\d+)/m.exec(stats)!;
  return Number(usec) / Number(calls);
}

/** The commands that one call runs. */
async function commandsOf(client: Redis, call: () => Promise<unknown>): Promise<number> {
  await client.config('RESETSTAT');
  await call();
  const stats = await client.info('commandstats');
  const counts = [...stats.matchAll(/^cmdstat_(?!evalsha|config|info)[^:]+:calls=(\d+)/gm)];
  return counts.reduce((sum, [, calls]) => sum + Number(calls), 0);
}

async function prepare(client: Redis, operation: BareName, build: Build): Promise<string[]> {
  await client.flushall();
  const ids = Array.from({ length: SESSIONS }, newId);
  if (operation !== 'create') await inFlight(ids, (id) => build.scripts.create(creation(id)));
  return ids;
}

const server = await RedisServer.start();
const client = new Redis(server.url);
const ours = await load('ours', new URL('../../packages/session-redis/dist', import.meta.url).pathname, server.url);
const other = process.argv[2] === undefined ? [] : [await load('other build', process.argv[2], server.url)];
const bare = bareScripts(client, ours.partitions.all[0]!);
for (const operation of OPERATIONS) {
  const calls = [
    { name: 'bare', call: bare[operation] },
    ...[ours, ...other].map((build) => ({ name: build.name, call: callsOf(build)[operation] })),
  ];
  const contenders: Contender[] = [];
  for (const { name, call } of calls) {
    const [id] = await prepare(client, operation, ours);
    await call(newId());
    const commands = await commandsOf(client, () => call(id!));
    const measure = async () => {
      const ids = await prepare(client, operation, ours);
      return timeOf(client, () => inFlight(ids, call));
    };
    contenders.push({ name: `${name}, ${commands} commands`, measure });
  }
  printTable(`${operation}, µs of Redis for each call`, await runRounds(contenders, ROUNDS, WARM_UP));
}
await server.stop();
process.exit();
