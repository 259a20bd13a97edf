import assert from 'node:assert/strict';
import type { DeadlineCheckGroup } from './deadline-check.group.js';
import { keysOfEvents } from './deadline-trial.js';
import { unhandled, visit } from './visits.js';

export const RESCHEDULING: DeadlineCheckGroup = {
  name: 'rescheduling',
  checks: {
    'gives what waits another time, and leaves its id, its data and when it was scheduled': async (t) => {
      const { deadlines } = await t.start();
      await deadlines.schedule(visit, 'a', { in: '1h', data: { n: 1 } });
      const before = (await deadlines.get(visit, 'a'))!;
      await t.pass(30);
      assert.equal(await deadlines.reschedule(visit, 'a', { at: before.dueAt + 60_000 }), 'moved');
      assert.deepEqual(await deadlines.get(visit, 'a'), { ...before, dueAt: before.dueAt + 60_000 });
      assert.equal(await deadlines.reschedule(visit, 'a', { in: '5m' }), 'moved');
      const { dueAt, ...after } = (await deadlines.get(visit, 'a'))!;
      assert.deepEqual({ ...after, dueAt: before.dueAt }, before);
      assert.ok(dueAt > before.scheduledAt + 300_000 && dueAt < before.dueAt, `${dueAt}`);
      assert.equal(await deadlines.count(visit), 1);
    },

    'lets it come at its new time, sooner or later, and once': async (t) => {
      const { deadlines, visits } = await t.visited();
      await deadlines.schedule(visit, 'sooner', { in: '1h', data: 1 });
      await deadlines.schedule(visit, 'later', { in: '400ms', data: 2 });
      const { id, dueAt } = (await deadlines.get(visit, 'later'))!;
      assert.equal(await deadlines.reschedule(visit, 'later', { at: dueAt + 50 }), 'moved');
      assert.equal(await deadlines.reschedule(visit, 'sooner', { in: '50ms' }), 'moved');
      await t.pass(400);
      await t.until(() => assert.deepEqual(keysOfEvents(visits.events), ['later', 'sooner']));
      const later = visits.events.find(({ key }) => key === 'later')!;
      assert.deepEqual([later.id, later.dueAt, later.data], [id, dueAt + 50, 2]);
      assert.ok(later.at >= dueAt + 50, `${later.at}`);
    },

    'answers fired for what has come, and none for what never was or was cancelled': async (t) => {
      const { deadlines, visits } = await t.visited();
      await deadlines.schedule(visit, 'fired', { in: 0 });
      await t.until(() => assert.equal(visits.events.length, 1));
      await deadlines.schedule(visit, 'cancelled', { in: '1h' });
      await deadlines.cancel(visit, 'cancelled');
      for (const [key, answer] of [
        ['fired', 'fired'],
        ['cancelled', 'none'],
        ['unknown', 'none'],
      ] as const)
        assert.equal(await deadlines.reschedule(visit, key, { in: '1h' }), answer, key);
      assert.equal(await deadlines.count(visit), 0);
    },
  },
};

export const CANCELLING: DeadlineCheckGroup = {
  name: 'cancelling',
  checks: {
    'answers cancelled once, and then none waits': async (t) => {
      const { deadlines } = await t.start();
      await deadlines.schedule(visit, 'a', { in: '1h' });
      assert.equal(await deadlines.cancel(visit, 'a'), 'cancelled');
      assert.equal(await deadlines.cancel(visit, 'a'), 'none');
      assert.equal(await deadlines.get(visit, 'a'), undefined);
      assert.deepEqual([await deadlines.count(visit), await deadlines.list(visit)], [0, []]);
    },

    'lets no handler hear of what was cancelled': async (t) => {
      const { deadlines, visits } = await t.visited();
      // On a busy machine, one comes before it is cancelled: then the next is further ahead.
      for (let ahead = 300; ; ahead *= 4) {
        const key = `cancelled ${ahead} ms before`;
        await deadlines.schedule(visit, key, { in: `${ahead}ms` });
        const due = await deadlines.get(visit, key);
        if ((await deadlines.cancel(visit, key)) !== 'cancelled') continue;
        await deadlines.schedule(visit, 'b', { at: due!.dueAt + 100 });
        await t.pass(ahead + 100);
        await t.until(() => assert.ok(keysOfEvents(visits.events).includes('b')));
        assert.ok(!keysOfEvents(visits.events).includes(key));
        return;
      }
    },

    'answers fired for what has come, also when it was handled': async (t) => {
      const { deadlines, visits } = await t.visited();
      await deadlines.schedule(visit, 'a', { in: 0 });
      await t.until(() => assert.equal(visits.events.length, 1));
      assert.equal(await deadlines.cancel(visit, 'a'), 'fired');
      assert.equal(await deadlines.cancel(visit, 'a'), 'fired');
      assert.equal(visits.events.length, 1);
    },

    'answers none for a key that was never scheduled': async (t) => {
      const { deadlines } = await t.start();
      await deadlines.schedule(visit, 'a', { in: '1h' });
      assert.equal(await deadlines.cancel(visit, 'A'), 'none');
      assert.equal(await deadlines.count(visit), 1);
    },

    'knows a new deadline of a key that has fired as one of its own': async (t) => {
      const { deadlines, visits } = await t.visited();
      await deadlines.schedule(visit, 'a', { in: 0, data: 1 });
      await t.until(() => assert.equal(visits.events.length, 1));
      assert.equal(await deadlines.schedule(visit, 'a', { in: '1h', data: 2 }), 'scheduled');
      assert.equal((await deadlines.get(visit, 'a'))?.data, 2);
      assert.equal(await deadlines.cancel(visit, 'a'), 'cancelled');
      assert.equal(await deadlines.cancel(visit, 'a'), 'none');
      assert.equal(await deadlines.schedule(visit, 'a', { in: 0, data: 3 }), 'scheduled');
      await t.until(() => assert.equal(visits.events.length, 2));
      assert.deepEqual(
        visits.events.map(({ data }) => data),
        [1, 3],
      );
      assert.equal(new Set(visits.events.map(({ id }) => id)).size, 2);
    },

    'cancels and reschedules what is overdue, where nobody handles it yet': async (t) => {
      const { deadlines, visits } = await t.visited();
      await deadlines.scheduleMany(unhandled, [
        { key: 'a', in: 0 },
        { key: 'b', in: 0 },
      ]);
      await deadlines.schedule(visit, 'sentinel', { in: '50ms' });
      await t.until(() => assert.equal(visits.events.length, 1));
      assert.equal(await deadlines.cancel(unhandled, 'a'), 'cancelled');
      assert.equal(await deadlines.reschedule(unhandled, 'b', { in: '1h' }), 'moved');
    },
  },
};
