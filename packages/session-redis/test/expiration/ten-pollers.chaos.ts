import { eventually } from '@nest-session/testing';
import { figures, print } from '../support/figures.js';
import { GRACE, Store } from '../support/store.fixture.js';
import { WorkerProcess } from '../support/worker.process.js';

const SESSIONS = 50_000;
const POLLERS = 10;
const PATIENCE = 240_000;
const AT_ONCE = 500;
/** Milliseconds until the first one ends, and until the last one has: it takes that long to say so. */
const [FIRST, SECOND] = [60_000, 1000];

let store: Store;
let workers: WorkerProcess[] = [];
beforeEach(async () => {
  store = await Store.open({ expirations: 'sorted-set' });
});
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.end()));
  workers = [];
  await store.close();
});

async function inBatches<T>(items: readonly T[], call: (item: T) => Promise<unknown>): Promise<void> {
  for (let i = 0; i < items.length; i += AT_ONCE) await Promise.all(items.slice(i, i + AT_ONCE).map(call));
}

/** How often the end of each session was recorded. */
async function recordedEnds(): Promise<Map<string, number>> {
  const ends = new Map<string, number>();
  const entries = await store.client.xrange(store.keys.events, '-', '+');
  for (const [, [, type, , id]] of entries) {
    if (type === 'expired') ends.set(id!, (ends.get(id!) ?? 0) + 1);
  }
  return ends;
}

it('ten pollers, 50,000 sessions due in one second, five pollers killed: each end is recorded once and handled', async () => {
  const ids = Array.from({ length: SESSIONS }, () => store.id());
  await inBatches(ids, (id) => store.create({ cart: '["apple"]' }, { id }));
  // The creations are not what this is about.
  await store.client.del(store.keys.events);
  const environment = {
    REDIS_URL: store.server.url,
    CRON: '0 0 0 29 2 *',
    NOTIFICATIONS: 'off',
    EXPIRATIONS: 'sorted-set',
    LEASE: '5s',
  };
  for (let i = 0; i < POLLERS; i += 2) {
    workers.push(...(await Promise.all([1, 2].map(() => WorkerProcess.start(environment)))));
  }
  await store.client.call('CONFIG', 'RESETSTAT');
  const begin = (await store.now()) + FIRST;
  await inBatches(ids, async (id) => {
    const end = begin + Math.floor(Math.random() * SECOND);
    const pipeline = store.client.pipeline();
    pipeline.zadd(store.keys.ends, end, id);
    pipeline.pexpireat(store.keys.session(id), end + GRACE);
    pipeline.pexpireat(store.keys.shadow(id), end);
    await pipeline.exec();
  });
  expect(await store.now()).toBeLessThan(begin);
  expect(await store.client.zcard(store.keys.ends)).toBe(SESSIONS);

  await eventually(async () => expect(await store.client.xlen(store.keys.events)).toBeGreaterThan(SESSIONS / 20), {
    timeout: PATIENCE,
    interval: 10,
  });
  const doomed = workers.slice(0, POLLERS / 2);
  await Promise.all(doomed.map((worker) => worker.end('SIGKILL')));
  const before = SESSIONS - (await store.client.zcard(store.keys.ends));
  await eventually(async () => expect(await store.client.zcard(store.keys.ends)).toBe(0), {
    timeout: PATIENCE,
    interval: 10,
  });
  const took = (await store.now()) - begin;
  const { calls, microseconds, longest } = await figures(store.client, 'evalsha');
  const recorded = await recordedEnds();
  expect(recorded.size).toBe(SESSIONS);
  expect(new Set(recorded.values())).toEqual(new Set([1]));

  const handled = () => {
    const lines = workers.flatMap((worker) => worker.lines);
    return new Set(lines.flatMap((line) => /^handled expired-(\S+)$/.exec(line)?.[1] ?? []));
  };
  await eventually(() => expect(handled().size).toBe(SESSIONS), { timeout: PATIENCE, interval: 1000 });
  const data = new Set(
    workers.flatMap(({ lines }) =>
      lines.filter((line) => line.startsWith('handling ')).map((line) => line.split(' ')[2]),
    ),
  );
  expect([...data]).toEqual(['["apple"]']);
  print(
    `${POLLERS} pollers, ${SESSIONS} sessions in a second, ${before} claimed before five were killed: all claimed ` +
      `${took} ms after the first end; ${calls} calls, ${(microseconds / SESSIONS).toFixed(1)} us of Redis per session with its delivery, longest call ${longest}`,
  );
});
