import { RedisServer } from '@nest-session/testing';
import { BenchServer } from './bench.server.js';
import { isQuick } from './results.js';
import { interleave } from './rounds.js';
import { medianOf, number, ratio, table } from './table.js';
import { TELEMETRIES } from './telemetry.applications.js';

// What telemetry adds to the processor time of a request; for docs/evidence/benchmarks.md.
const ROUNDS = isQuick ? 7 : 21;
const WARM_UP = 2;
const DURATION = isQuick ? 400 : 800;
const CONNECTIONS = 16;
const ROUTES = { 'one attribute is read': '/read', 'one attribute is written': '/write' };

const redis = await RedisServer.start();
const servers = await Promise.all(TELEMETRIES.map((name) => BenchServer.start('telemetry', name, redis.url)));
const cookies = await Promise.all(
  servers.map((server) => Promise.all(Array.from({ length: CONNECTIONS }, () => server.cookieOf('/write')))),
);
for (const [title, path] of Object.entries(ROUTES)) {
  const each = servers.map((server, n) => ({
    name: TELEMETRIES[n]!,
    measure: async () => {
      const load = { path, connections: CONNECTIONS, duration: DURATION, cookies: cookies[n]! };
      const { processorTime, requests } = await server.load(load);
      return processorTime / requests;
    },
  }));
  const [without, ...others] = await interleave(each, ROUNDS, WARM_UP);
  const rows = others.map((times, n) => [TELEMETRIES[n + 1]!, number(medianOf(times)), ratio(times, without!)]);
  const header = [title, 'Node µs', 'ratio'];
  console.log(table(header, [['without', number(medianOf(without!)), '1'], ...rows]));
}
for (const server of servers) server.stop();
await redis.stop();
