import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '@nest-session/testing';
import type { SweepResult } from '../../../redis-events/src/cleanup/due.sweeper.js';
import { Store } from '../support/store.fixture.js';
import { WorkerProcess } from '../support/worker.process.js';
import { figures, print } from '../support/figures.js';

const SESSIONS = 20_000;
const PROCESSES = 3;
const PATIENCE = 240_000;

let store: Store;
let workers: WorkerProcess[] = [];
beforeEach(async () => {
  store = await Store.open({ args: ['--enable-debug-command', 'local'] });
});
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.end()));
  workers = [];
  await store.close();
});

async function startWorkers(environment: Record<string, string>): Promise<void> {
  // The test starts each sweep.
  const all = { REDIS_URL: store.server.url, LEASE: '30s', CRON: '0 0 0 29 2 *', ...environment };
  workers = await Promise.all(Array.from({ length: PROCESSES }, () => WorkerProcess.start(all)));
}

/** Sessions that have ended when this resolves, without a key event so far. */
async function createDueSessions(): Promise<Set<string>> {
  await store.client.config('SET', 'hz', '1');
  // Redis does not look for expired keys by itself.
  await store.client.call('DEBUG', 'SET-ACTIVE-EXPIRE', '0');
  const ids = new Set<string>();
  for (let begun = 0; begun < SESSIONS; begun += 500) {
    const created = await Promise.all(
      Array.from({ length: 500 }, () => store.create({ cart: '["apple"]' }, { interval: 1 })),
    );
    for (const id of created) ids.add(id);
  }
  await pause(1100);
  await store.client.call('CONFIG', 'RESETSTAT');
  return ids;
}

/** The sessions that were handled, once for each time. */
function reported(): string[] {
  return workers.flatMap(({ lines }) => lines.flatMap((line) => /^handled expired-(\S+)$/.exec(line)?.[1] ?? []));
}

async function untilReported(ids: ReadonlySet<string>): Promise<void> {
  await eventually(
    async () => {
      const [group] = (await store.client.xinfo('GROUPS', store.keys.events)) as [(string | number)[]];
      const [, , , , , pending, , , , read] = group;
      expect([pending, read]).toEqual([0, 2 * SESSIONS]);
    },
    { timeout: PATIENCE, interval: 250 },
  );
  // Some of their lines may still be in flight.
  await eventually(() => reported().length >= SESSIONS);
  const all = reported();
  expect(all).toHaveLength(SESSIONS);
  expect(new Set(all)).toEqual(ids);
}

it('three processes that sweep at once report each of 20,000 sessions once', async () => {
  await startWorkers({ NOTIFICATIONS: 'off' });
  const ids = await createDueSessions();
  const begin = performance.now();
  for (const worker of workers) worker.tell('sweep');
  await Promise.all(workers.map((worker) => worker.saysLine(/^swept /, { timeout: PATIENCE })));
  const took = performance.now() - begin;
  const { calls, microseconds, longest } = await figures(store.client, 'evalsha');
  await untilReported(ids);

  const found = workers.map(
    ({ lines }) => JSON.parse(lines.find((line) => line.startsWith('swept '))!.slice(6)) as SweepResult,
  );
  const sum = (word: 'claimed' | 'already') => found.reduce((total, result) => total + result[word], 0);
  expect(sum('claimed')).toBe(SESSIONS);
  print(
    `${PROCESSES} sweepers, ${SESSIONS} sessions: ${Math.round(took)} ms; ${calls} calls, ` +
      `${(microseconds / SESSIONS).toFixed(1)} us of Redis per session, ${sum('already')} claimed again, longest call ${longest}`,
  );
});

it('three processes that are notified of 20,000 ends report each once', async () => {
  await startWorkers({ NOTIFICATIONS: 'auto' });
  const ids = await createDueSessions();
  const begin = performance.now();
  await store.client.call('DEBUG', 'SET-ACTIVE-EXPIRE', '1');
  await store.client.config('SET', 'hz', '500');
  await untilReported(ids);
  const { calls, microseconds, longest } = await figures(store.client, 'evalsha');
  print(
    `${PROCESSES} listeners, ${SESSIONS} sessions: ${Math.round(performance.now() - begin)} ms until handled; ${calls} calls, ` +
      `${(microseconds / SESSIONS).toFixed(1)} us of Redis per session, longest call ${longest}`,
  );
});
