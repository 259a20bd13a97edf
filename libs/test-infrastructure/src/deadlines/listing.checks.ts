import assert from 'node:assert/strict';
import type { Deadlines, ListOptions, ScheduledDeadline } from '@nest-session/deadlines';
import type { DeadlineCheckGroup } from './deadline-check.group.js';
import type { DeadlineTrial } from './deadline-trial.js';
import { call, visit } from './visits.js';

export const LISTING: DeadlineCheckGroup = {
  name: 'get, count and list',
  checks: {
    'finds what waits under a key, and nothing else': async (t) => {
      const { deadlines } = await t.start();
      const at = t.now + 3_600_000;
      await deadlines.schedule(visit, 'a', { at, data: { n: 1 } });
      const { id, scheduledAt, ...rest } = (await deadlines.get(visit, 'a'))!;
      assert.deepEqual(rest, { key: 'a', data: { n: 1 }, dueAt: at });
      assert.match(id, /^\S+$/);
      assert.ok(Math.abs(scheduledAt - t.now) < 60_000);
      assert.deepEqual([await deadlines.get(visit, 'b'), await deadlines.get(call, 'a')], [undefined, undefined]);
    },

    'counts and lists those of one kind': async (t) => {
      const { deadlines } = await t.start();
      assert.deepEqual([await deadlines.count(visit), await deadlines.list(visit)], [0, []]);
      await deadlines.schedule(visit, 'a', { in: '1h', data: 1 });
      await deadlines.schedule(call, 'b', { in: '1h' });
      assert.equal(await deadlines.count(visit), 1);
      assert.deepEqual(await deadlines.list(visit), [await deadlines.get(visit, 'a')]);
    },

    'lists them in the order of their times, whatever the order in which they came': async (t) => {
      const { deadlines } = await t.start();
      await schedule(t, deadlines, { d: 4, b: 2, a: 1, c: 3 });
      assert.deepEqual(keys(await deadlines.list(visit)), ['a', 'b', 'c', 'd']);
      await deadlines.reschedule(visit, 'a', { in: '1d' });
      assert.deepEqual(keys(await deadlines.list(visit)), ['b', 'c', 'd', 'a']);
    },

    'lists 100 by default, and as many as limit says': async (t) => {
      const { deadlines } = await t.start();
      await deadlines.scheduleMany(
        visit,
        Array.from({ length: 120 }, (_, i) => ({ key: `${i}`, in: '1h' })),
      );
      assert.equal((await deadlines.list(visit)).length, 100);
      assert.equal((await deadlines.list(visit, { limit: 7 })).length, 7);
      assert.equal((await deadlines.list(visit, { limit: 1000 })).length, 120);
    },

    'lists only those that are due before an instant': async (t) => {
      const { deadlines } = await t.start();
      const begin = await schedule(t, deadlines, { a: 1, b: 2, c: 3 });
      assert.deepEqual(keys(await deadlines.list(visit, { before: begin + 2 })), ['a']);
      assert.deepEqual(keys(await deadlines.list(visit, { before: new Date(begin + 3) })), ['a', 'b']);
      assert.deepEqual(keys(await deadlines.list(visit, { before: begin + 1 })), []);
      assert.deepEqual(keys(await deadlines.list(visit, { before: begin + 9, limit: 2 })), ['a', 'b']);
    },

    'leads page by page through all, also through those of one time, each once': async (t) => {
      const { deadlines } = await t.start();
      const times = Array.from({ length: 23 }, (_, i) => [`key ${i}`, Math.floor(i / 8)] as const);
      await schedule(t, deadlines, Object.fromEntries(times));
      const all = await deadlines.list(visit);
      assert.equal(new Set(keys(all)).size, 23);
      for (const limit of [1, 3, 8, 22, 23, 100]) assert.deepEqual(await pages(deadlines, limit), all);
    },

    'goes on behind the last of a page that is gone, or has another time, meanwhile': async (t) => {
      const { deadlines } = await t.start();
      await schedule(t, deadlines, { a: 1, b: 1, c: 1, d: 2, e: 3 });
      const all = keys(await deadlines.list(visit));
      const second = (await deadlines.list(visit, { limit: 2 })).at(-1)!;
      await deadlines.cancel(visit, second.key);
      assert.deepEqual(keys(await deadlines.list(visit, { after: second })), all.slice(2));
      const third = (await deadlines.list(visit, { limit: 2 })).at(-1)!;
      await deadlines.reschedule(visit, third.key, { in: '1d' });
      const behind = keys(await deadlines.list(visit, { after: third }));
      assert.deepEqual(behind, [...all.slice(3), third.key]);
    },

    'combines before, after and limit': async (t) => {
      const { deadlines } = await t.start();
      const begin = await schedule(t, deadlines, { a: 1, b: 2, c: 3, d: 4, e: 5 });
      const list = (options: ListOptions) => deadlines.list(visit, options).then(keys);
      const after = { key: 'a', dueAt: begin + 1 };
      assert.deepEqual(await list({ after, before: begin + 4 }), ['b', 'c']);
      assert.deepEqual(await list({ after, before: begin + 5, limit: 1 }), ['b']);
      assert.deepEqual(await list({ after: { key: 'e', dueAt: begin + 5 } }), []);
      assert.deepEqual(await list({ after, before: begin + 1 }), []);
    },

    'lists what is overdue and has no handler': async (t) => {
      const { deadlines } = await t.start();
      await deadlines.schedule(visit, 'a', { at: 0, data: 1 });
      assert.deepEqual(
        (await deadlines.list(visit)).map(({ dueAt }) => dueAt),
        [0],
      );
    },
  },
};

/** Schedules keys so many milliseconds after an instant in an hour, and returns that. */
async function schedule(
  t: DeadlineTrial,
  deadlines: Deadlines,
  times: Readonly<Record<string, number>>,
): Promise<number> {
  const begin = t.now + 3_600_000;
  const entries = Object.entries(times);
  await deadlines.scheduleMany(
    visit,
    entries.map(([key, after]) => ({ key, at: begin + after, data: after })),
  );
  return begin;
}

function keys(listed: readonly ScheduledDeadline<unknown>[]): string[] {
  return listed.map(({ key }) => key);
}

async function pages(deadlines: Deadlines, limit: number): Promise<ScheduledDeadline<unknown>[]> {
  const all: ScheduledDeadline<unknown>[] = [];
  for (;;) {
    const page = await deadlines.list(visit, { limit, ...(all.length > 0 && { after: all.at(-1)! }) });
    if (page.length === 0) return all;
    assert.ok(page.length <= limit);
    all.push(...page);
    assert.ok(all.length <= 100, 'The pages do not end');
  }
}
