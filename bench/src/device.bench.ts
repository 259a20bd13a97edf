import { HttpAgent, RedisServer } from '@nest-session/testing';
import { BenchServer } from './bench.server.js';
import { CONNECTIONS, costTable } from './costs.js';
import { BINDINGS } from './device.applications.js';

// What `deviceBound` adds to the processor time of a request with a user; for docs/evidence/benchmarks.md.
const ROUTES = { 'one attribute is read': '/read', 'one attribute is written': '/write' };

/** Of a user who is signed in, and whose browser has proven its key if it has one. */
async function cookiesOf(server: BenchServer, bindsSessions: boolean): Promise<string> {
  const browser = new HttpAgent(server.origin, { bindsSessions });
  for (const path of ['/sign-in', '/read', '/read']) await browser.get(path);
  return browser.headersFor('/')['cookie']!;
}

const redis = await RedisServer.start();
const contenders = await Promise.all(
  BINDINGS.map(async (name) => {
    const server = await BenchServer.start('device', name, redis.url);
    const all = Array.from({ length: CONNECTIONS }, () => cookiesOf(server, name.endsWith(', bound')));
    return { name, server, cookies: await Promise.all(all) };
  }),
);
for (const [title, path] of Object.entries(ROUTES)) console.log(await costTable(title, path, contenders));
for (const { server } of contenders) server.stop();
await redis.stop();
