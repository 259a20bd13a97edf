import { LeakGuard, RedisServer } from '@nest-session/testing';
import { setTimeout as pause } from 'node:timers/promises';
import { App } from '../support/app.fixture.js';
import { print } from './figures.js';

LeakGuard.install();

const COMMAND_TIMEOUT = 500;
const FROZEN = 10_000;
const CLIENTS = 50;

let server: RedisServer;
let app: App;
beforeAll(async () => {
  server = await RedisServer.start();
  app = await App.start({ redis: { url: server.url, commandTimeout: `${COMMAND_TIMEOUT}ms` }, handlers: false });
});
afterAll(async () => {
  await app.stop();
  await server.stop();
});

it('a frozen Redis holds no request much longer than the command timeout, and the first one afterwards succeeds', async () => {
  const answers: { status: number; took: number; isDuring: boolean }[] = [];
  let isFrozen = false;
  let isOver = false;
  const client = async () => {
    const agent = app.agent();
    await agent.post('/set/value', { value: 1 });
    while (!isOver) {
      const begin = performance.now();
      const wasFrozen = isFrozen;
      const { status } = await agent.post('/set/value', { value: answers.length });
      answers.push({ status, took: performance.now() - begin, isDuring: wasFrozen && isFrozen });
    }
  };
  const load = Promise.all(Array.from({ length: CLIENTS }, client));
  await pause(1000);
  server.freeze();
  isFrozen = true;
  await pause(FROZEN);
  isFrozen = false;
  server.thaw();
  const first = await app.agent().post('/set/value', { value: 'first' });
  await pause(1000);
  isOver = true;
  await load;

  const during = answers.filter(({ isDuring }) => isDuring);
  const took = during.map((answer) => answer.took).toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(took[Math.min(took.length - 1, Math.floor(took.length * share))]!);
  print(
    `Redis frozen for ${FROZEN} ms, command timeout ${COMMAND_TIMEOUT} ms: ${during.length} requests of ${CLIENTS} clients ` +
      `answered meanwhile, after ${at(0.5)} ms (median), ${at(0.99)} ms (99 %), ${at(1)} ms (longest)`,
  );
  expect(during.length).toBeGreaterThanOrEqual(CLIENTS);
  expect(new Set(during.map(({ status }) => status))).toEqual(new Set([503]));
  expect(at(1)).toBeLessThan(10 * COMMAND_TIMEOUT);
  expect(first.status).toBe(201);
  expect(answers.at(-1)!.status).toBe(201);
});
