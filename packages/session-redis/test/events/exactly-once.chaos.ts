import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { App } from '../support/app.fixture.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

const SESSIONS = 10_000;
const AT_A_TIME = 500;

let store: Store;
let apps: App[];
beforeAll(async () => {
  store = await Store.open();
  // Without faults: no process may stall for longer than the lease.
  const redis = { url: store.server.url, events: { lease: '1h' } };
  apps = await Promise.all(
    (['express', 'fastify', 'express', 'fastify'] as const).map((adapter) => App.start({ adapter, redis })),
  );
  await eventually(async () => (await store.readers()) === apps.length);
});
afterAll(async () => {
  for (const app of apps) await app.stop();
  await store.close();
});

/** Half of them are deleted, half expire. */
async function endSessions(): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < SESSIONS; i += AT_A_TIME) {
    const some = await Promise.all(Array.from({ length: AT_A_TIME }, () => store.create({ cart: '"apple"' })));
    const [deleted, expired] = [some.slice(AT_A_TIME / 2), some.slice(0, AT_A_TIME / 2)];
    await Promise.all([...deleted.map((id) => store.scripts.delete(id)), ...expired.map((id) => store.runOut(id))]);
    await store.scripts.claimExpired(
      store.keys,
      expired.map((id) => `expires:${id}`),
    );
    ids.push(...some);
  }
  return ids;
}

it('without faults, the end of each of 10,000 sessions is reported exactly once, with its data', async () => {
  const begun = performance.now();
  const ids = await endSessions();
  const ends = () => apps.flatMap((app) => app.events.all()).filter(({ type }) => type !== 'created');
  await eventually(() => ends().length >= SESSIONS, { timeout: 120_000 });
  await eventually(async () => (await store.pending('default')) === 0);
  const took = performance.now() - begun;
  const reports = ends();
  expect(reports).toHaveLength(SESSIONS);
  expect(new Set(reports.map(({ sessionId }) => sessionId))).toEqual(new Set(ids));
  expect(reports.filter(({ type }) => type === 'expired')).toHaveLength(SESSIONS / 2);
  expect(reports.filter(({ session }) => session.getAttribute('cart') !== 'apple')).toEqual([]);
  const shares = apps.map((app) => app.events.all().length);
  expect(Math.min(...shares)).toBeGreaterThan(0);
  expect(apps.flatMap((app) => app.events.all()).filter(({ type }) => type === 'created')).toHaveLength(SESSIONS);
  process.stdout.write(
    `${SESSIONS} of ${SESSIONS} ends, and as many beginnings, handled exactly once by two Express and two Fastify ` +
      `applications: ${Math.round((2 * SESSIONS) / (took / 1000))} events/s, shares ${shares.join(', ')}\n`,
  );
}, 180_000);
