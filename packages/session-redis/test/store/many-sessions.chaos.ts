import { PRINCIPAL_NAME_INDEX_NAME, Sessions } from '@nest-session/core';
import { PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { App } from '../support/app.fixture.js';
import { figures, print } from '../support/figures.js';
import { Store } from '../support/store.fixture.js';
import { hashOfValue } from '../support/hash-of-value.js';

LeakGuard.install();

const SESSIONS = 100_000;
/** Sessions of one call of Redis. */
const MOST_PER_CALL = 100;
/** Microseconds, on average: a busy machine interrupts single calls. */
const MEAN_CALL = 5000;
/** Milliseconds. */
const LONGEST_REQUEST = 50;

const PRINCIPAL = PRINCIPAL_NAME_INDEX_NAME;

let store: Store;
afterEach(() => store.close());

async function openSessions(): Promise<string[]> {
  const indexes = new Map([[PRINCIPAL, hashOfValue('eve')]]);
  const attributes = new Map([[PRINCIPAL_ATTRIBUTE, '"eve"']]);
  const session = { kind: 'create', presentedIds: [], maxInactiveInterval: 1800, absoluteTimeout: -1 } as const;
  const ids: string[] = [];
  while (ids.length < SESSIONS) {
    const batch = Array.from({ length: 500 }, () => store.id());
    await Promise.all(batch.map((id) => store.scripts.create({ ...session, id, attributes, indexes })));
    ids.push(...batch);
  }
  return ids;
}

/** What 99 of 100 requests take at most that a visitor sends while a step runs, in milliseconds. */
async function p99During(app: App, step: () => Promise<unknown>): Promise<number> {
  const visitor = app.agent();
  await visitor.post('/set/cart', { value: ['apple'] });
  const times: number[] = [];
  let isRunning = true;
  const running = step().finally(() => (isRunning = false));
  while (isRunning) {
    const begin = performance.now();
    expect((await visitor.get('/read')).json()).toMatchObject({ isNew: false });
    times.push(performance.now() - begin);
  }
  await running;
  return times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)]!;
}

it.each([1, 8])(
  'a principal with 100,000 sessions delays no request of another visitor, and all of them can be ended, partitions: %d',
  async (partitions) => {
    store = await Store.open({ partitions });
    const cleanup = { cron: '0 0 0 29 2 *' };
    const redis = { url: store.server.url, partitions, cleanup, notifications: 'off', commandTimeout: '1s' } as const;
    const app = await App.start({ redis, handlers: false });
    try {
      const ids = await openSessions();
      const sessions = app.nest.get(Sessions, { strict: false });
      const measure = async (what: string, step: () => Promise<unknown>, fewestCalls: number) => {
        await store.client.config('RESETSTAT');
        const begin = performance.now();
        const p99 = await p99During(app, step);
        const took = ((performance.now() - begin) / 1000).toFixed(1);
        const { calls, microseconds, longest } = await figures(store.client, 'evalsha');
        const mean = microseconds / calls;
        print(
          `${partitions} partition(s): ${what} took ${took} s, requests p99 ${p99.toFixed(1)} ms, ${calls} calls of ${mean.toFixed()} us, ${longest}`,
        );
        expect(calls).toBeGreaterThanOrEqual(fewestCalls);
        expect(mean).toBeLessThan(MEAN_CALL);
        expect(p99).toBeLessThan(LONGEST_REQUEST);
      };

      const visitor = app.agent();
      // A process that has just started is slow.
      for (let i = 0; i < 300; i++) await visitor.get('/read');
      const listed = new Set<string>();
      const list = async () => {
        for await (const { id } of sessions.ofPrincipal('eve')) listed.add(id);
      };
      await measure('list', list, SESSIONS / MOST_PER_CALL);
      expect(listed).toEqual(new Set(ids));
      await measure('count', async () => expect(await sessions.count('eve')).toBe(SESSIONS), 1);
      const [kept] = ids;
      const endAll = async () => expect(await sessions.endAll('eve', { except: kept })).toBe(SESSIONS - 1);
      await measure('end all but one', endAll, SESSIONS / MOST_PER_CALL);

      const left = await Promise.all(
        store.partitions.all.map((keys) => store.client.zrange(keys.index(PRINCIPAL, hashOfValue('eve')), '0', '-1')),
      );
      expect(left.flat()).toEqual([kept]);
      // Nobody wants to hear of creations.
      const ends = (await store.eventTypesOf(ids)).map((types) => types.filter((type) => type !== 'created').join());
      expect([ends[0], ...new Set(ends.slice(1))]).toEqual(['', 'deleted']);
      const loaded: string[] = [];
      for await (const { id } of sessions.ofPrincipal('eve')) loaded.push(id);
      expect(loaded).toEqual([kept]);
    } finally {
      await app.stop();
    }
  },
);
