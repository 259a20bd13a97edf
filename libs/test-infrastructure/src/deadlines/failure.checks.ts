import assert from 'node:assert/strict';
import type { DeadlineCheckGroup } from './deadline-check.group.js';
import { type DeadlineApplication, type DeadlineTrial, keysOfEvents } from './deadline-trial.js';
import { FailingVisits, visit, Visits } from './visits.js';

export const RETRIES: DeadlineCheckGroup = {
  name: 'retries',
  checks: {
    'calls a handler that failed again, with the same event and the next attempt': async (t) => {
      const app = await t.start(FailingVisits);
      app.get(FailingVisits).failures = 2;
      await app.deadlines.schedule(visit, 'a', { in: 0, data: { n: 1 } });
      const { events } = app.get(FailingVisits);
      await t.untilRetried(() => assert.equal(events.length, 3));
      assert.deepEqual(
        events.map(({ attempt }) => attempt),
        [1, 2, 3],
      );
      const facts = events.map(({ id, name, key, data, dueAt, at }) => ({ id, name, key, data, dueAt, at }));
      assert.deepEqual(facts, [facts[0], facts[0], facts[0]]);
      assert.deepEqual(facts[0]?.data, { n: 1 });
      assert.deepEqual(await app.events.deadLetters(), []);
    },

    'does not call those again that succeeded': async (t) => {
      const app = await t.start(FailingVisits, Visits);
      app.get(FailingVisits).failures = 2;
      await app.deadlines.schedule(visit, 'a', { in: 0 });
      await t.untilRetried(() => assert.equal(app.get(FailingVisits).events.length, 3));
      assert.equal(app.get(Visits).events.length, 1);
    },

    'answers fired while it is retried, and takes the key for a new one': async (t) => {
      const app = await t.start(FailingVisits);
      const handler = app.get(FailingVisits);
      handler.failures = 1;
      await app.deadlines.schedule(visit, 'a', { in: 0, data: 'old' });
      await t.until(() => assert.ok(handler.events.length > 0));
      assert.equal(await app.deadlines.cancel(visit, 'a'), 'fired');
      assert.equal(await app.deadlines.schedule(visit, 'a', { in: '1h', data: 'new' }), 'scheduled');
      await t.untilRetried(() => assert.equal(handler.events.filter(({ data }) => data === 'old').length, 2));
    },

    'is not held up by one that is retried': async (t) => {
      const app = await t.start(FailingVisits);
      const handler = app.get(FailingVisits);
      handler.failures = 1;
      await app.deadlines.schedule(visit, 'failing', { in: 0 });
      await t.until(() => assert.equal(handler.failures, 0));
      await app.deadlines.schedule(visit, 'other', { in: 0 });
      await t.until(() => assert.ok(keysOfEvents(handler.events).includes('other')));
    },
  },
};

export const DEAD_LETTERS: DeadlineCheckGroup = {
  name: 'dead letters',
  checks: {
    'has a dead letter with all about the deadline after the last attempt': async (t) => {
      const app = await t.start(FailingVisits, Visits);
      const { events } = app.get(FailingVisits);
      await dead(t, app, 'a');
      const [letter] = await app.events.deadLetters();
      const { id, name, key, data, dueAt, attempt } = letter!.event!;
      const last = events.at(-1)!;
      assert.deepEqual([id, name, key, data], [last.id, visit.name, 'a', { of: 'a' }]);
      assert.deepEqual([dueAt, attempt], [last.dueAt, last.attempt]);
      assert.equal(letter?.attempts, events.length);
      assert.equal(letter?.handler, 'FailingVisits.record');
      assert.deepEqual(letter?.succeeded, ['Visits.record']);
      assert.equal(letter?.group, (await app.events.list())[0]?.name);
      assert.match(letter!.reason, /FailingVisits\.record: Error: Nobody is at home/);
      assert.ok(Math.abs(letter!.at - t.now) < 3_600_000, `${letter!.at}`);
      assert.deepEqual([letter?.omittedBytes, letter?.member], [undefined, undefined]);
    },

    'does not call a handler of a dead letter again by itself': async (t) => {
      const app = await t.start(FailingVisits);
      await dead(t, app, 'a');
      const { length } = app.get(FailingVisits).events;
      let passes = 0;
      await t.untilRetried(() => (passes += 1) > 2);
      assert.equal(app.get(FailingVisits).events.length, length);
      assert.equal(Math.max(...app.get(FailingVisits).events.map(({ attempt }) => attempt)), length);
    },

    'takes the key of a dead letter for a new deadline': async (t) => {
      const app = await t.start(FailingVisits);
      await dead(t, app, 'a');
      app.get(FailingVisits).failures = 0;
      assert.equal(await app.deadlines.schedule(visit, 'a', { in: 0, data: 'new' }), 'scheduled');
      await t.until(() => assert.equal(app.get(FailingVisits).events.at(-1)?.data, 'new'));
      assert.equal((await app.events.deadLetters()).length, 1);
    },

    'replays it with new attempts, the same id and the same data, for those that have not succeeded': async (t) => {
      const app = await t.start(FailingVisits, Visits);
      const handler = app.get(FailingVisits);
      const [id] = await dead(t, app, 'a');
      const calls = handler.events.length;
      handler.failures = 1;
      assert.equal(await app.events.replay(id!), 'replayed');
      await t.untilRetried(() => assert.equal(handler.events.length, calls + 2));
      const replayed = handler.events.slice(calls);
      assert.deepEqual(
        replayed.map(({ attempt }) => attempt),
        [1, 2],
      );
      assert.equal(new Set(handler.events.map((event) => event.id)).size, 1);
      assert.deepEqual(replayed.at(-1)?.data, { of: 'a' });
      assert.equal(app.get(Visits).events.length, 1);
      assert.deepEqual(await app.events.deadLetters(), []);
      assert.equal(await app.events.replay(id!), 'gone');
    },

    'has another dead letter when the replay fails as often': async (t) => {
      const app = await t.start(FailingVisits);
      const [id] = await dead(t, app, 'a');
      const { length } = app.get(FailingVisits).events;
      assert.equal(await app.events.replay(id!), 'replayed');
      await t.untilRetried(async () => assert.equal((await app.events.deadLetters()).length, 1));
      const [letter] = await app.events.deadLetters();
      assert.notEqual(letter?.id, id);
      assert.equal(letter?.attempts, length);
      assert.deepEqual(letter?.event?.data, { of: 'a' });
    },

    'lists them, the oldest first, page by page': async (t) => {
      const app = await t.start(FailingVisits);
      const ids = await dead(t, app, 'a', 'b', 'c');
      assert.deepEqual(await idsOf(app, { limit: 2 }), ids.slice(0, 2));
      assert.deepEqual(await idsOf(app, { after: ids[1]! }), ids.slice(2));
      assert.deepEqual(await idsOf(app, { after: ids[0]!, limit: 1 }), ids.slice(1, 2));
      const times = (await app.events.deadLetters()).map(({ at }) => at);
      assert.deepEqual(
        times,
        times.toSorted((one, other) => one - other),
      );
      await assert.rejects(app.events.deadLetters({ after: 'nonsense' }), RangeError);
    },

    'refuses a limit that is no whole number of them': async (t) => {
      const app = await t.start(FailingVisits);
      const ids = await dead(t, app, 'a', 'b');
      for (const limit of [-1, 1.5, Number.NaN, '1' as unknown as number])
        await assert.rejects(app.events.deadLetters({ limit }), RangeError);
      assert.deepEqual(await idsOf(app, { limit: 0 }), []);
      assert.deepEqual(await idsOf(app, { limit: Infinity }), ids);
    },

    'chooses by the name of the group': async (t) => {
      const app = await t.start(FailingVisits);
      const ids = await dead(t, app, 'a');
      const [{ name } = { name: '' }] = await app.events.list();
      assert.deepEqual(await idsOf(app, { group: name }), ids);
      assert.deepEqual(await idsOf(app, { group: 'another' }), []);
      assert.equal(await app.events.discardAll({ group: 'another' }), 0);
      assert.equal(await app.events.replayAll({ group: 'another' }), 0);
      assert.deepEqual(await idsOf(app), ids);
    },

    'discards one, and then all others': async (t) => {
      const app = await t.start(FailingVisits);
      const ids = await dead(t, app, 'a', 'b', 'c');
      assert.equal(await app.events.discard(ids[1]!), true);
      assert.equal(await app.events.discard(ids[1]!), false);
      assert.equal(await app.events.discard('nonsense'), false);
      assert.equal(await app.events.replay(ids[1]!), 'gone');
      assert.deepEqual(await idsOf(app), [ids[0], ids[2]]);
      assert.equal(await app.events.discardAll(), 2);
      assert.deepEqual([await idsOf(app), await app.events.discardAll()], [[], 0]);
    },

    'replays all': async (t) => {
      const app = await t.start(FailingVisits);
      const handler = app.get(FailingVisits);
      await dead(t, app, 'a', 'b');
      const { length } = handler.events;
      handler.failures = 0;
      assert.equal(await app.events.replayAll(), 2);
      await t.until(() => assert.deepEqual(keysOfEvents(handler.events.slice(length)), ['a', 'b']));
      assert.deepEqual(await idsOf(app), []);
      assert.equal(await app.events.replayAll(), 0);
    },
  },
};

/** Lets the deadlines of these keys become dead letters. Returns the ids of those. */
async function dead(t: DeadlineTrial, app: DeadlineApplication, ...keys: readonly string[]): Promise<string[]> {
  for (const key of keys) await app.deadlines.schedule(visit, key, { in: 0, data: { of: key } });
  await t.untilRetried(async () => assert.equal((await app.events.deadLetters()).length, keys.length));
  return idsOf(app);
}

async function idsOf(
  { events }: DeadlineApplication,
  options?: Parameters<DeadlineApplication['events']['deadLetters']>[0],
): Promise<string[]> {
  return (await events.deadLetters(options)).map(({ id }) => id);
}
