import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { BenchServer } from './bench.server.js';
import { httpReport } from './http.report.js';
import {
  BARE,
  type ContenderName,
  NODE_NEEDED,
  ON_EXPRESS,
  ON_FASTIFY,
  type Scenario,
  SCENARIOS,
  SPRING,
} from './http.scenarios.js';
import type { Size } from './http.payloads.js';
import type { Load } from './load.generator.js';
import { redisUsage } from './redis.usage.js';
import { byFigure, type Comparison, isQuick, writeResults } from './results.js';
import { interleave } from './rounds.js';

const ROUNDS = isQuick ? 5 : 9;
const WARM_UP = 1;
/** Milliseconds of load in one round. */
const DURATION = isQuick ? 400 : 1500;
const SESSIONS = 50;
const WARM_UP_REQUESTS = 4000;

const isBare = (name: string) => Object.values<string>(BARE).includes(name);

/** Requests to applications that keep their sessions in Redis, from outside. */
async function compare(scenario: Scenario, servers: ReadonlyMap<ContenderName, BenchServer>, redis: Redis) {
  // Without a session there is no command, and nothing else is like Spring.
  const names = [...servers.keys()].filter((name) => name !== SPRING || scenario.path !== '/plain');
  const contenders = names.map((name) => {
    const server = servers.get(name)!;
    // The bare application has one route, and no sessions.
    const { path, size, connections } = isBare(name) ? { ...scenario, path: '/plain', size: undefined } : scenario;
    const measureOnce = async () => {
      // New ones for each round: a login leaves none of them valid.
      const cookies = size === undefined ? [] : await cookiesOf(size, server);
      return measure(server, { path, connections, cookies }, redis);
    };
    return { name, measure: measureOnce };
  });
  const rounds = await interleave(contenders, ROUNDS, WARM_UP);
  return { title: scenario.title, contenders: names.map((name, n) => ({ name, figures: byFigure(rounds[n]!) })) };
}

function cookiesOf(size: Size, server: BenchServer): Promise<string[]> {
  const path = `/start?size=${encodeURIComponent(size)}`;
  return Promise.all(Array.from({ length: SESSIONS }, () => server.cookieOf(path)));
}

async function measure(
  server: BenchServer,
  load: Omit<Load, 'port' | 'duration'>,
  redis: Redis,
): Promise<Record<string, number>> {
  const redisBefore = await redisUsage(redis);
  const ownBefore = process.cpuUsage();
  const { requests, elapsed, p50, p99, processorTime } = await server.load({ ...load, duration: DURATION });
  const own = process.cpuUsage(ownBefore);
  const redisAfter = await redisUsage(redis);
  return {
    perSecond: (1000 * requests) / elapsed,
    p50,
    p99,
    nodeTime: processorTime / requests,
    redisTime: (redisAfter.processorTime - redisBefore.processorTime) / requests,
    commands: (redisAfter.commands - redisBefore.commands) / requests,
    // Shares of a processor: the one near 1 sets the limit.
    serverBusy: processorTime / 1000 / elapsed,
    loadBusy: (own.user + own.system) / 1000 / elapsed,
  };
}

/** Node.js compiles what runs often. Without this, the first scenarios would measure how busy the compiler is. */
async function warmUp(name: ContenderName, server: BenchServer): Promise<void> {
  for (const path of isBare(name) ? ['/plain'] : ['/plain', '/read', '/read-all', '/write', '/write-large', '/login']) {
    for (let sent = 0; sent < WARM_UP_REQUESTS;) {
      const cookies = isBare(name) ? [] : await cookiesOf('1 x 100 B', server);
      const { requests } = await server.load({ path, connections: SESSIONS, duration: 300, cookies });
      sent += requests;
    }
  }
}

async function startServers(url: string): Promise<Map<ContenderName, BenchServer>> {
  const servers = new Map<ContenderName, BenchServer>();
  const [major] = process.versions.node.split('.');
  for (const name of [...ON_EXPRESS, ...ON_FASTIFY]) {
    const needed = NODE_NEEDED[name];
    if (needed !== undefined && Number(major) < needed) {
      console.log(`Left out: ${name} needs Node.js ${needed}, and this is ${process.version}.`);
    } else {
      servers.set(name, await BenchServer.start('http', name, url));
    }
  }
  return servers;
}

const redisServer = await RedisServer.start();
const redis = new Redis(redisServer.url);
const servers = await startServers(redisServer.url);
for (const [name, server] of servers) await warmUp(name, server);
const comparisons: Comparison[] = [];
for (const scenario of SCENARIOS) {
  comparisons.push(await compare(scenario, servers, redis));
  console.log(`measured: ${scenario.title}`);
}
const [, version] = /redis_version:(\S+)/.exec(await redis.info('server')) ?? [];
for (const server of servers.values()) server.stop();
redis.disconnect();
await redisServer.stop();
console.log(`\n${httpReport(await writeResults('http', comparisons, version))}`);
