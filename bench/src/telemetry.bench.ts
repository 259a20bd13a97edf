import { RedisServer } from '@nest-session/testing';
import { BenchServer } from './bench.server.js';
import { CONNECTIONS, costTable } from './costs.js';
import { TELEMETRIES } from './telemetry.applications.js';

// What telemetry adds to the processor time of a request; for docs/evidence/benchmarks.md.
const ROUTES = { 'one attribute is read': '/read', 'one attribute is written': '/write' };

const redis = await RedisServer.start();
const contenders = await Promise.all(
  TELEMETRIES.map(async (name) => {
    const server = await BenchServer.start('telemetry', name, redis.url);
    const cookies = await Promise.all(Array.from({ length: CONNECTIONS }, () => server.cookieOf('/write')));
    return { name, server, cookies };
  }),
);
for (const [title, path] of Object.entries(ROUTES)) console.log(await costTable(title, path, contenders));
for (const { server } of contenders) server.stop();
await redis.stop();
