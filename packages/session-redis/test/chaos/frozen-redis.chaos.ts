import { eventually, LeakGuard, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';
import { print } from './figures.js';

LeakGuard.install();

const COMMAND_TIMEOUT = 5000;
const CLIENTS = 50;
const TICK = 50;

let server: RedisServer;
let client: Redis;
let app: App;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
  app = await App.start({ redis: { url: server.url, commandTimeout: `${COMMAND_TIMEOUT}ms` }, handlers: false });
});
afterAll(async () => {
  await app.stop();
  client.disconnect();
  await server.stop();
});

/** Milliseconds as this process has lived through them: not those for which it stood still itself. */
let lived = 0;
let clock: NodeJS.Timeout;
beforeAll(() => {
  clock = setInterval(() => (lived += TICK), TICK);
});
afterAll(() => clearInterval(clock));

it('a frozen Redis holds no request much longer than the command timeout, and the first one afterwards succeeds', async () => {
  const answers: { status: number; took: number; when: 'before' | 'during' | 'after' | 'between' }[] = [];
  let phase: 'before' | 'during' | 'after' = 'before';
  let isOver = false;
  const load = async () => {
    const agent = app.agent();
    await agent.post('/set/value', { value: 1 });
    while (!isOver) {
      const begin = lived;
      const begunIn = phase;
      const { status } = await agent.post('/set/value', { value: answers.length });
      answers.push({ status, took: lived - begin, when: begunIn === phase ? phase : 'between' });
    }
  };
  const of = (when: string) => answers.filter((answer) => answer.when === when);
  const answered = (when: string, count: number) =>
    eventually(() => expect(of(when).length).toBeGreaterThanOrEqual(count), { timeout: 120_000 });

  const loads = Promise.all(Array.from({ length: CLIENTS }, load));
  await answered('before', CLIENTS);
  server.freeze();
  const begin = performance.now();
  phase = 'during';
  await answered('during', 2 * CLIENTS);
  const frozen = performance.now() - begin;
  phase = 'after';
  server.thaw();
  // Then it is there again.
  await client.ping();
  const first = await app.agent().post('/set/value', { value: 'first' });
  expect(first.status).toBe(201);
  await eventually(() => expect(of('after').filter(({ status }) => status === 201).length).toBeGreaterThan(CLIENTS));
  isOver = true;
  await loads;

  const took = of('during')
    .map((answer) => answer.took)
    .toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(took[Math.min(took.length - 1, Math.floor(took.length * share))]!);
  print(
    `Redis frozen for ${Math.round(frozen)} ms, command timeout ${COMMAND_TIMEOUT} ms: ${took.length} requests of ` +
      `${CLIENTS} clients answered meanwhile, after ${at(0.5)} ms (median), ${at(0.99)} ms (99 %), ${at(1)} ms (longest)`,
  );
  expect(new Set(of('during').map(({ status }) => status))).toEqual(new Set([503]));
  expect(at(1)).toBeLessThan(2 * COMMAND_TIMEOUT);
});
