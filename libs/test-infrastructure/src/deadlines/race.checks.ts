import assert from 'node:assert/strict';
import type { DeadlineCheckGroup } from './deadline-check.group.js';
import { type DeadlineTrial, keysOfEvents } from './deadline-trial.js';
import { visit } from './visits.js';

const SPAN = 100;
/** Deadlines whose times are spread over the span. */
const MANY = Array.from({ length: 100 }, (_, i) => ({ key: `${i}`, in: `${i}ms` }));
const KEYS = MANY.map(({ key }) => key);

export const RACES: DeadlineCheckGroup = {
  name: 'races',
  checks: {
    'answers of cancel() agree with what the handlers hear while deadlines come': async (t) => {
      const { deadlines, visits } = await t.visited();
      await deadlines.scheduleMany(visit, MANY);
      const answers = await duringTheSpan(t, (key) => deadlines.cancel(visit, key));
      const fired = KEYS.filter((_, i) => answers[i] === 'fired');
      assert.deepEqual(new Set([...answers, 'fired', 'cancelled']), new Set(['fired', 'cancelled']));
      await t.until(() => assert.ok(visits.events.length >= fired.length));
      await deadlines.schedule(visit, 'sentinel', { in: '100ms' });
      await t.until(() => assert.ok(keysOfEvents(visits.events).includes('sentinel')));
      assert.deepEqual(keysOfEvents(visits.events), [...fired, 'sentinel'].toSorted());
    },

    'answers of reschedule() agree with when the handlers hear of it': async (t) => {
      const { deadlines, visits } = await t.visited();
      await deadlines.scheduleMany(visit, MANY);
      const later = t.now + 600;
      const answers = await duringTheSpan(t, (key) => deadlines.reschedule(visit, key, { at: later }));
      assert.deepEqual(new Set([...answers, 'fired', 'moved']), new Set(['fired', 'moved']));
      await t.pass(600);
      await t.until(() => assert.ok(visits.events.length >= KEYS.length));
      assert.deepEqual(keysOfEvents(visits.events), KEYS.toSorted());
      for (const { key, dueAt } of visits.events) assert.equal(dueAt === later, answers[Number(key)] === 'moved', key);
    },

    'answers of schedule() and cancel() of one key agree with what waits in the end': async (t) => {
      const { deadlines } = await t.start();
      const calls = Array.from({ length: 60 }, (_, i) =>
        i % 3 === 0 ? deadlines.cancel(visit, 'a') : deadlines.schedule(visit, 'a', { in: '1h', data: i }),
      );
      const answers = await Promise.all(calls);
      const count = (answer: string) => answers.filter((each) => each === answer).length;
      const waiting = (await deadlines.get(visit, 'a')) ? 1 : 0;
      assert.equal(count('scheduled') - count('cancelled'), waiting);
      assert.equal(await deadlines.count(visit), waiting);
      assert.equal(count('fired'), 0);
    },

    'replaces what has not come, and schedules anew what has, so that each is handled once': async (t) => {
      const { deadlines, visits } = await t.visited();
      await deadlines.scheduleMany(visit, MANY);
      const answers = await duringTheSpan(t, (key) => deadlines.schedule(visit, key, { in: 0, data: 'second' }));
      const isScheduled = (key: string) => answers[Number(key)] === 'scheduled';
      const expected = [...KEYS, ...KEYS.filter(isScheduled)].toSorted();
      await t.until(() => assert.ok(visits.events.length >= expected.length));
      assert.deepEqual(keysOfEvents(visits.events), expected);
      const second = visits.events.filter(({ data }) => data === 'second');
      assert.deepEqual(keysOfEvents(second), KEYS.toSorted());
    },
  },
};

/** Calls with one key after the other, in their order backwards, while the times of all pass. */
async function duringTheSpan<T>(t: DeadlineTrial, call: (key: string) => Promise<T>): Promise<T[]> {
  const answers: T[] = [];
  const passing = (async () => {
    for (let past = 0; past < SPAN; past += 5) await t.pass(5);
  })();
  const calling = (async () => {
    for (const key of KEYS.toReversed()) answers[Number(key)] = await call(key);
  })();
  await Promise.all([passing, calling]);
  return answers;
}
