import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { print } from '../support/figures.js';
import { Store } from '../support/store.fixture.js';
import { WorkerProcess } from '../support/worker.process.js';

LeakGuard.install();

const EVENTS = 50_000;
const INSTANCES = 5;
const AT_A_TIME = 500;

let store: Store;
const workers: WorkerProcess[] = [];
beforeAll(async () => {
  store = await Store.open({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
});
afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.end()));
  await store.close();
});

async function startWorker(): Promise<WorkerProcess> {
  const environment = { REDIS_URL: store.server.url, NOTIFICATIONS: 'off', GRACE: '3s', CRON: '* * * * * *' };
  // Longer than a process may stall on a few cores: its events would be handled twice.
  const worker = await WorkerProcess.start({ ...environment, LEASE: '20s' });
  workers.push(worker);
  return worker;
}

async function endSessions(): Promise<Set<string>> {
  const ids = new Set<string>();
  while (ids.size < EVENTS) {
    const some = await Promise.all(Array.from({ length: AT_A_TIME }, () => store.create({ cart: '["apple"]' })));
    await Promise.all(some.map((id) => store.scripts.delete(id)));
    for (const id of some) ids.add(id);
  }
  return ids;
}

/** The sessions whose end was handled, once for each time. */
function handled(): string[] {
  return workers.flatMap(({ lines }) => lines.flatMap((line) => /^handled deleted-(\S+)$/.exec(line)?.[1] ?? []));
}

/** The sessions whose end is pending for an instance, or for any. */
async function pendingEnds(worker?: WorkerProcess): Promise<string[]> {
  const { client, keys } = store;
  const pending = (await client.xpending(keys.events, 'default', '-', '+', 10_000)) as [string, string][];
  const own = pending.filter(([, consumer]) => !worker || consumer.includes(`:${worker.pid}:`));
  const entries = await Promise.all(own.map(([position]) => client.xrange(keys.events, position, position)));
  return entries.flat().flatMap(([, [, type, , session]]) => (type === 'deleted' ? [session!] : []));
}

/** The sessions that were handled more often than once plus their occurrences in `excused`. */
function unexcused(excused: readonly string[]): string[] {
  const allowed = new Map<string, number>();
  for (const id of excused) allowed.set(id, (allowed.get(id) ?? 0) + 1);
  const times = new Map<string, number>();
  for (const id of handled()) times.set(id, (times.get(id) ?? 0) + 1);
  return [...times].filter(([id, count]) => count > 1 + (allowed.get(id) ?? 0)).map(([id]) => id);
}

async function untilHandled(count: number): Promise<void> {
  await eventually(() => handled().length >= count, { timeout: 240_000, interval: 200 });
}

it('five instances handle 50,000 events in spite of two kills and a restart of Redis, and nothing is left', async () => {
  const ids = await endSessions();
  const begun = performance.now();
  await Promise.all(Array.from({ length: INSTANCES }, startWorker));

  // A fault may repeat only the events in flight: of the killed instance, or of all.
  const inFlight: string[] = [];
  await untilHandled(EVENTS / 5);
  await workers[0]!.end('SIGKILL');
  inFlight.push(...(await pendingEnds(workers[0])));
  await untilHandled((2 * EVENTS) / 5);
  await store.server.kill();
  await store.server.restart();
  inFlight.push(...(await pendingEnds()));
  await untilHandled((3 * EVENTS) / 5);
  await workers[1]!.end('SIGKILL');
  inFlight.push(...(await pendingEnds(workers[1])));
  await eventually(() => new Set(handled()).size >= EVENTS, { timeout: 240_000, interval: 500 });
  expect(new Set(handled())).toEqual(ids);
  const took = performance.now() - begun;
  await eventually(async () => expect(await store.client.xlen(store.keys.events)).toBe(0), { timeout: 60_000 });

  const duplicates = handled().length - EVENTS;
  print(
    `${EVENTS} ends and as many beginnings, ${INSTANCES} instances, two of them killed, Redis killed and restarted: ` +
      `${Math.round(took)} ms, ${inFlight.length} in flight then, ${duplicates} handled twice`,
  );
  expect(unexcused(inFlight)).toEqual([]);
  const { events, handlers, trimmed, wanted } = store.keys;
  await eventually(async () =>
    expect(new Set([...(await store.client.keys('*')), events, handlers, trimmed, wanted])).toEqual(
      new Set([events, handlers, trimmed, wanted, store.partitions.meta, store.partitions.instances]),
    ),
  );
}, 600_000);
