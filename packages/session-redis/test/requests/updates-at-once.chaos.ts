import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { eventually, HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { commandStats } from '../support/command.stats.js';
import { print } from '../support/figures.js';
import { WorkerProcess } from '../support/worker.process.js';

const PROGRAM = fileURLToPath(new URL('../support/updates.worker.mjs', import.meta.url));
const UPDATES = 200;
const ROUNDS = 15;
const VISITORS = 4;
const LARGE = 60_000;

let server: RedisServer;
let client: Redis;
let workers: WorkerProcess[] = [];
let origins: string[] = [];
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
});
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.end()));
  workers = [];
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

async function startWorkers(count: number, size = 0): Promise<void> {
  const environment = { REDIS_URL: server.url, SIZE: String(size) };
  const start = () => WorkerProcess.start(environment, { program: PROGRAM, ready: /^listening / });
  workers = await Promise.all(Array.from({ length: count }, start));
  origins = workers.map(({ lines }) => /^listening (.*)$/m.exec(lines.join('\n'))![1]!);
}

/** A visitor with a session of his own, at one of the processes. */
async function visitor(at = 0): Promise<HttpAgent> {
  const agent = new HttpAgent(origins[at % origins.length]!, { keepAlive: true });
  expect((await agent.post('/start')).status).toBe(201);
  return agent;
}

/** Clients of all processes that share the session of a visitor. */
function sharing(agent: HttpAgent, count: number): HttpAgent[] {
  return Array.from({ length: count }, (_, i) => {
    const client = new HttpAgent(origins[i % origins.length]!, { keepAlive: true });
    client.setCookie(`SESSION=${agent.cookie('SESSION')}; Path=/`);
    return client;
  });
}

async function scripts(): Promise<number> {
  const stats = await commandStats(client);
  return ['eval', 'evalsha'].reduce((sum, name) => sum + (stats.get(name)?.calls ?? 0), 0);
}

async function post(agents: readonly HttpAgent[], path: string): Promise<void> {
  const statuses = await Promise.all(agents.map(async (agent) => (await agent.post(path)).status));
  expect(statuses).toEqual(agents.map(() => 201));
}

/** The times that visitors wait for a page, in milliseconds, while `load` runs. */
async function waits(visitors: readonly HttpAgent[], load: () => Promise<void>): Promise<number[]> {
  const times: number[] = [];
  let isLoaded = true;
  const visiting = visitors.map(async (agent) => {
    while (isLoaded) {
      const begin = performance.now();
      expect((await agent.get('/read')).status).toBe(200);
      times.push(performance.now() - begin);
    }
  });
  await load();
  isLoaded = false;
  await Promise.all(visiting);
  return times;
}

function percentile(times: readonly number[], share: number): number {
  return [...times].sort((a, b) => a - b)[Math.floor(times.length * share)]!;
}

describe.each([
  { processes: 1, most: 3 },
  { processes: 4, most: 10 },
])(`${UPDATES} updates of one attribute at once, on $processes processes,`, ({ processes, most }) => {
  it(`cost at most ${most} scripts each, and none is lost`, async () => {
    await startWorkers(processes);
    const agent = await visitor();
    const agents = sharing(agent, UPDATES);
    let total = 0;
    for (let round = 1; round <= ROUNDS; round++) {
      await client.config('RESETSTAT');
      await post(agents, '/add');
      const called = await scripts();
      total += called;
      expect(called).toBeLessThanOrEqual(most * UPDATES);
      expect((await agent.get('/read')).json()).toEqual({ count: round * UPDATES });
    }
    print(`${processes} processes: ${(total / ROUNDS / UPDATES).toFixed(2)} scripts for each update`);
    for (const each of [agent, ...agents]) each.close();
  });

  it.each([
    { path: '/add', size: 0 },
    { path: '/fill', size: LARGE },
  ])(`at most double the p99 of other visitors, with a text of $size bytes`, async ({ path, size }) => {
    await startWorkers(processes, size);
    const visitors = await Promise.all(Array.from({ length: VISITORS }, (_, i) => visitor(i)));
    const shared = sharing(await visitor(), UPDATES);
    const own = await Promise.all(Array.from({ length: UPDATES }, (_, i) => visitor(i)));
    const times = { shared: [] as number[], own: [] as number[] };
    await post(shared, path);
    await post(own, path);
    for (let round = 0; round < ROUNDS; round++) {
      // The same load without a common attribute, in turn with it.
      times.own.push(...(await waits(visitors, () => post(own, path))));
      times.shared.push(...(await waits(visitors, () => post(shared, path))));
    }
    const [one, many] = [percentile(times.shared, 0.99), percentile(times.own, 0.99)];
    print(
      `${processes} processes, ${size} bytes: p99 of others ${one.toFixed(1)} ms, of ${times.shared.length}; ` +
        `while as many sessions are updated ${many.toFixed(1)} ms, of ${times.own.length}`,
    );
    expect(one).toBeLessThanOrEqual(2 * many);
    for (const each of [...visitors, ...shared, ...own]) each.close();
  });

  it('stop when their clients disconnect', async () => {
    await startWorkers(processes);
    const agent = await visitor();
    const sent = 2 * UPDATES;
    const leaving = new AbortController();
    setMaxListeners(0, leaving.signal);
    const flood = sharing(agent, sent).map((each) => each.post('/add', undefined, { signal: leaving.signal }));
    const settled = Promise.allSettled(flood);
    await pause(100);
    leaving.abort();
    await settled;
    const statuses = async () =>
      Promise.all(
        origins.map(async (origin) => {
          const monitor = new HttpAgent(origin);
          return (await monitor.get('/status')).json<{ calls: number; running: number }>();
        }),
      );
    await eventually(async () => expect((await statuses()).every(({ running }) => running === 0)).toBe(true));
    const calls = (await statuses()).reduce((sum, each) => sum + each.calls, 0);
    print(`${processes} processes: ${calls} calls of the function by ${sent} requests whose clients left after 100 ms`);
    expect(calls).toBeLessThanOrEqual(most * sent);
    agent.close();
  });
});
