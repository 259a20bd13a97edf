import assert from 'node:assert/strict';
import { deadline } from '@nest-session/deadlines';
import type { DeadlineCheckGroup } from './deadline-check.group.js';
import { keysOfEvents } from './deadline-trial.js';
import { call, visit } from './visits.js';

export const SCHEDULING: DeadlineCheckGroup = {
  name: 'scheduling',
  checks: {
    'answers scheduled for a key under which none waits': async (t) => {
      const { deadlines } = await t.start();
      assert.equal(await deadlines.schedule(visit, 'a', { in: '1h' }), 'scheduled');
      assert.equal(await deadlines.schedule(visit, 'b', { in: '1h' }), 'scheduled');
      assert.equal(await deadlines.count(visit), 2);
    },

    'counts `in` from now, by the clock of the store': async (t) => {
      const { deadlines } = await t.start();
      const before = t.now;
      await deadlines.schedule(visit, 'a', { in: '1h' });
      const after = t.now;
      const { dueAt, scheduledAt } = (await deadlines.get(visit, 'a'))!;
      assert.equal(dueAt, scheduledAt + 3_600_000);
      assert.ok(scheduledAt >= before - 1 && scheduledAt <= after + 1, `${scheduledAt}`);
    },

    'takes `at` as a Date or as epoch milliseconds, to the millisecond': async (t) => {
      const { deadlines } = await t.start();
      const at = t.now + 3_600_123;
      await deadlines.schedule(visit, 'date', { at: new Date(at) });
      await deadlines.schedule(visit, 'number', { at: at + 1 });
      assert.equal((await deadlines.get(visit, 'date'))?.dueAt, at);
      assert.equal((await deadlines.get(visit, 'number'))?.dueAt, at + 1);
    },

    'fires at once what is due in no time, or was due in the past': async (t) => {
      const { deadlines, visits } = await t.visited();
      const at = t.now - 60_000;
      await deadlines.schedule(visit, 'in', { in: 0 });
      await deadlines.schedule(visit, 'at', { at });
      await deadlines.schedule(visit, '1970', { at: 0 });
      await t.until(() => assert.deepEqual(keysOfEvents(visits.events), ['1970', 'at', 'in']));
      const event = visits.events.find(({ key }) => key === 'at')!;
      assert.equal(event.dueAt, at);
      assert.ok(event.late >= 60_000, `${event.late}`);
      assert.equal(event.late, event.at - at);
    },

    'replaces by default what waits under the key: another time, other data, another id': async (t) => {
      const { deadlines, visits } = await t.visited();
      await deadlines.schedule(visit, 'a', { in: '1h', data: { n: 1 } });
      const { id } = (await deadlines.get(visit, 'a'))!;
      assert.equal(await deadlines.schedule(visit, 'a', { in: '2h', data: { n: 2 } }), 'replaced');
      assert.equal(await deadlines.count(visit), 1);
      await deadlines.reschedule(visit, 'a', { in: 0 });
      await t.until(() => assert.equal(visits.events.length, 1));
      const [event] = visits.events;
      assert.deepEqual(event?.data, { n: 2 });
      assert.notEqual(event?.id, id);
    },

    'never fires the one that was replaced': async (t) => {
      const { deadlines, visits } = await t.visited();
      await deadlines.schedule(visit, 'a', { in: '400ms', data: { n: 1 } });
      const { dueAt } = (await deadlines.get(visit, 'a'))!;
      assert.equal(await deadlines.schedule(visit, 'a', { at: dueAt + 50, data: { n: 2 } }), 'replaced');
      await t.pass(400);
      await t.until(() => assert.ok(visits.events.length > 0));
      assert.deepEqual(
        visits.events.map((event) => [event.dueAt, event.data]),
        [[dueAt + 50, { n: 2 }]],
      );
    },

    'keeps the one that waits with ifExists: keep': async (t) => {
      const { deadlines } = await t.start();
      await deadlines.schedule(visit, 'a', { in: '1h', data: 1, ifExists: 'keep' });
      const kept = await deadlines.get(visit, 'a');
      for (const time of ['10m', '2h'])
        assert.equal(await deadlines.schedule(visit, 'a', { in: time, data: 2, ifExists: 'keep' }), 'kept');
      assert.deepEqual(await deadlines.get(visit, 'a'), kept);
    },

    'lets the one stay that is due earlier with ifExists: earlier': async (t) => {
      const { deadlines } = await t.start();
      const schedule = (time: string) => deadlines.schedule(visit, 'a', { in: time, data: time, ifExists: 'earlier' });
      assert.equal(await schedule('1h'), 'scheduled');
      assert.equal(await schedule('2h'), 'kept');
      assert.equal((await deadlines.get(visit, 'a'))?.data, '1h');
      assert.equal(await schedule('30m'), 'replaced');
      assert.equal((await deadlines.get(visit, 'a'))?.data, '30m');
    },

    'lets the one stay that is due later with ifExists: later': async (t) => {
      const { deadlines } = await t.start();
      const schedule = (time: string) => deadlines.schedule(visit, 'a', { in: time, data: time, ifExists: 'later' });
      assert.equal(await schedule('1h'), 'scheduled');
      assert.equal(await schedule('30m'), 'kept');
      assert.equal((await deadlines.get(visit, 'a'))?.data, '1h');
      assert.equal(await schedule('2h'), 'replaced');
      assert.equal((await deadlines.get(visit, 'a'))?.data, '2h');
    },

    'lets the one stay that waits where both are due at one time, with ifExists: earlier and later': async (t) => {
      const { deadlines } = await t.start();
      const at = t.now + 3_600_000;
      await deadlines.schedule(visit, 'a', { at, data: 'first' });
      const kept = await deadlines.get(visit, 'a');
      for (const ifExists of ['earlier', 'later'] as const)
        assert.equal(await deadlines.schedule(visit, 'a', { at, data: 'second', ifExists }), 'kept');
      assert.deepEqual(await deadlines.get(visit, 'a'), kept);
    },

    'schedules many, each as schedule() does, and answers in their order': async (t) => {
      const { deadlines } = await t.start();
      await deadlines.schedule(visit, 'b', { in: '1h', data: 'old' });
      const outcomes = await deadlines.scheduleMany(visit, [
        { key: 'a', in: '1h' },
        { key: 'b', in: '2h', ifExists: 'keep' },
        { key: 'c', at: t.now + 60_000, data: 3 },
        { key: 'b', in: '2h', data: 'new' },
      ]);
      assert.deepEqual(outcomes, ['scheduled', 'kept', 'scheduled', 'replaced']);
      assert.equal((await deadlines.get(visit, 'b'))?.data, 'new');
    },

    'lets the later one of two with the same key come second': async (t) => {
      const { deadlines } = await t.start();
      const many = [1, 2, 3].map((data) => ({ key: 'a', in: '1h', data }));
      assert.deepEqual(await deadlines.scheduleMany(visit, many), ['scheduled', 'replaced', 'replaced']);
      assert.equal((await deadlines.get(visit, 'a'))?.data, 3);
      assert.equal(await deadlines.count(visit), 1);
    },

    'schedules more than it sends in one call, and none': async (t) => {
      const { deadlines } = await t.start();
      const many = Array.from({ length: 250 }, (_, i) => ({ key: `key-${i % 240}`, in: '1h' }));
      const outcomes = await deadlines.scheduleMany(visit, many);
      assert.deepEqual(new Set(outcomes.slice(0, 240)), new Set(['scheduled']));
      assert.deepEqual(new Set(outcomes.slice(240)), new Set(['replaced']));
      assert.equal(await deadlines.count(visit), 240);
      assert.deepEqual(await deadlines.scheduleMany(visit, []), []);
    },

    'keeps equal keys of two kinds apart': async (t) => {
      const { deadlines, visits } = await t.visited();
      assert.equal(await deadlines.schedule(visit, 'a', { in: '60ms', data: 1 }), 'scheduled');
      assert.equal(await deadlines.schedule(call, 'a', { in: '1h' }), 'scheduled');
      await t.until(() => assert.equal(visits.events.length, 1));
      assert.deepEqual([await deadlines.count(visit), await deadlines.count(call)], [0, 1]);
      assert.equal(await deadlines.cancel(visit, 'a'), 'fired');
      assert.equal(await deadlines.cancel(call, 'a'), 'cancelled');
    },

    'takes two kinds with one name for the same': async (t) => {
      const { deadlines } = await t.start();
      await deadlines.schedule(visit, 'a', { in: '1h' });
      assert.equal(await deadlines.cancel(deadline(visit.name), 'a'), 'cancelled');
    },
  },
};
