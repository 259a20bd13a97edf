import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { BenchServer } from './bench.server.js';
import { encryptionReport } from './encryption.report.js';
import { redisUsage } from './redis.usage.js';
import { byFigure, type Comparison, isQuick, writeResults } from './results.js';
import { interleave } from './rounds.js';

const ROUNDS = isQuick ? 7 : 21;
const WARM_UP = 2;
const DURATION = isQuick ? 400 : 800;
const CONNECTIONS = 16;
const CONTENDERS = ['plain', 'encrypted'] as const;
const ROUTES = {
  'no attribute is read': '/read-none',
  'one of 100 bytes is read': '/read-one',
  'all are read': '/read-all',
  'one of 100 bytes is written': '/write-one',
  'all are written': '/write-all',
};

/** The same requests with and without encryption, in one Redis. */
async function compare(): Promise<{ comparisons: Comparison[]; version: string | undefined }> {
  const redisServer = await RedisServer.start();
  const redis = new Redis(redisServer.url);
  const servers = await Promise.all(CONTENDERS.map((name) => BenchServer.start('encryption', name, redisServer.url)));
  const cookies = await Promise.all(
    servers.map((server) => Promise.all(Array.from({ length: CONNECTIONS }, () => server.cookieOf('/write-all')))),
  );
  const comparisons: Comparison[] = [];
  for (const [title, path] of Object.entries(ROUTES)) {
    const each = CONTENDERS.map((name, n) => ({
      name,
      measure: async () => {
        const before = await redisUsage(redis);
        const load = { path, connections: CONNECTIONS, duration: DURATION, cookies: cookies[n]! };
        const { processorTime, requests } = await servers[n]!.load(load);
        const after = await redisUsage(redis);
        return {
          nodeTime: processorTime / requests,
          redisTime: (after.processorTime - before.processorTime) / requests,
          commands: (after.commands - before.commands) / requests,
        };
      },
    }));
    const rounds = await interleave(each, ROUNDS, WARM_UP);
    comparisons.push({ title, contenders: each.map(({ name }, n) => ({ name, figures: byFigure(rounds[n]!) })) });
  }
  for (const server of servers) server.stop();
  const [, version] = /redis_version:(\S+)/.exec(await redis.info('server')) ?? [];
  redis.disconnect();
  await redisServer.stop();
  return { comparisons, version };
}

const { comparisons, version } = await compare();
console.log(encryptionReport(await writeResults('encryption', comparisons, version)));
