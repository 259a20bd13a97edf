import { LeakGuard } from '@nest-session/test-infrastructure';
import fc from 'fast-check';
import { App } from '../support/app.fixture.js';
import { recordedExpirations } from '../support/key-event.fixture.js';
import { MINUTE, type SteppableStore, Store } from '../support/store.fixture.js';

LeakGuard.install();

describe.each([
  { notifications: 'auto', expirations: 'buckets' },
  { notifications: 'off', expirations: 'buckets' },
  { notifications: 'off', expirations: 'sorted-set' },
] as const)(
  'an application, notifications $notifications, $expirations, when the clock of Redis steps',
  ({ notifications, expirations }) => {
    let store: SteppableStore;
    let apps: App[];
    beforeAll(async () => {
      store = await Store.openSteppable({ expirations });
      // The tests run the job.
      const redis = { url: store.server.url, notifications, expirations, cleanup: { cron: '0 0 0 29 2 *' } } as const;
      apps = [await App.start({ redis }), await App.start({ redis, handlers: false })];
    });
    afterAll(async () => {
      for (const app of apps) await app.stop();
      await store.close();
    });

    const open = (minutes: number, count = 20) =>
      Promise.all(Array.from({ length: count }, () => store.create({ cart: '"apple"' }, { interval: minutes * 60 })));

    /** Both instances sweep at once. */
    const sweep = () => Promise.all(apps.map((app) => app.sweeper.runOnce()));

    async function stepAndSweep(minutes: number): Promise<void> {
      await store.server.stepClock(minutes * MINUTE);
      await sweep();
    }

    /** Expects the end of each to be recorded once and handled. */
    async function areReported(ids: readonly string[], { dataLost }: { dataLost: boolean }): Promise<void> {
      for (const id of ids) {
        expect(await store.eventTypes(id)).toEqual(['created', 'expired']);
        const handled = await apps[0]!.events.next('expired', id);
        expect(handled.dataLost).toBe(dataLost);
        expect(handled.session.getAttribute('cart')).toBe(dataLost ? undefined : 'apple');
      }
    }

    async function areAlive(ids: readonly string[]): Promise<void> {
      for (const id of ids) {
        expect(await store.isAlive(id)).toBe(true);
        expect(await store.eventTypes(id)).toEqual(['created']);
        const [buckets, due] = [await store.buckets(id), await store.due(id)];
        expect([buckets.length, due !== null]).toEqual(expirations === 'buckets' ? [1, false] : [0, true]);
      }
    }

    it('forward, reports the sessions that ended within the step, without data only past the grace period', async () => {
      const [lost, over, alive] = [await open(3), await open(8), await open(30)];
      await stepAndSweep(10);
      await areReported(lost, { dataLost: true });
      await areReported(over, { dataLost: false });
      await areAlive(alive);
      // The same minutes again.
      await stepAndSweep(-10);
      await stepAndSweep(10);
      await areReported(lost, { dataLost: true });
      await areReported(over, { dataLost: false });
      await areAlive(alive);
      await stepAndSweep(22);
      await areReported(alive, { dataLost: false });
    });

    it('back, reports no session early, none late, and the sessions that had already ended', async () => {
      const [over, soon, renewed] = [await open(1), await open(3), await open(30)];
      await store.server.stepClock(1.5 * MINUTE);
      // Redis notices the ends, but no instance claims them before the clock is set back.
      for (const id of over) expect(await store.isAlive(id)).toBe(false);
      await store.server.stepClock(-10 * MINUTE);
      for (const id of renewed) expect(await store.scripts.touch(id)).toEqual({ outcome: 'touched' });
      await sweep();
      await areAlive([...soon, ...renewed]);
      await stepAndSweep(5);
      await areAlive([...soon, ...renewed]);
      await stepAndSweep(8.5); // 5 minutes from the beginning
      await areReported([...over, ...soon], { dataLost: false });
      await areAlive(renewed);
      await stepAndSweep(18.5); // 2 minutes from the end of those that were renewed, 8.5 minutes before the beginning
      await areReported(renewed, { dataLost: false });
    });

    it('repeatedly, reports each session once and none before the clock has passed its end', async () => {
      const COUNT = 40;
      const steps = fc.array(
        fc.record({
          minutes: fc.constantFrom(-10, -10, -3, 1, 3, 10, 10),
          renewed: fc.uniqueArray(fc.nat({ max: COUNT - 1 }), { maxLength: COUNT / 2 }),
        }),
        { minLength: 5, maxLength: 10 },
      );
      await fc.assert(
        fc.asyncProperty(steps, async (walk) => {
          const ids = (await Promise.all(Array.from({ length: COUNT }, (_, i) => open(1 + i, 1)))).flat();
          const ends = new Map<string, number>();
          const noteEnd = async (id: string) => ends.set(id, await store.client.pexpiretime(store.keys.shadow(id)));
          for (const id of ids) await noteEnd(id);
          let latest = 0;
          for (const { minutes, renewed } of [...walk, { minutes: 120, renewed: [] }]) {
            await stepAndSweep(minutes);
            const recorded = await recordedExpirations(store);
            latest = Math.max(latest, await store.now());
            for (const id of ids) {
              if (recorded.has(id)) expect(ends.get(id)).toBeLessThanOrEqual(latest);
            }
            for (const i of renewed) {
              const { outcome } = await store.scripts.touch(ids[i]!);
              if (outcome === 'touched') await noteEnd(ids[i]!);
              // An ended session stays ended, and a live one has not been reported.
              else expect(ends.get(ids[i]!)).toBeLessThanOrEqual(Math.max(latest, await store.now()));
              if (outcome === 'touched') expect(recorded.has(ids[i]!)).toBe(false);
            }
          }
          const recorded = await recordedExpirations(store);
          expect(ids.map((id) => recorded.get(id))).toEqual(ids.map(() => 1));
        }),
        { numRuns: 5 },
      );
    });
  },
);
