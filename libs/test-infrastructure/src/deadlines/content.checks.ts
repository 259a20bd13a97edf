import assert from 'node:assert/strict';
import { DeadlineDataError } from '@nest-session/deadlines';
import type { DeadlineCheckGroup } from './deadline-check.group.js';
import { visit } from './visits.js';

const KEYS = [
  '42',
  'a b',
  ' ',
  'order:42',
  '{42}',
  '}{',
  '*',
  'a\nb',
  'a\0b',
  'ü',
  'order-Nº-√-日本-🛒',
  '__proto__',
  'x'.repeat(1024),
  'é'.repeat(512),
];

const REFUSED: readonly (readonly [unknown, typeof TypeError | typeof RangeError])[] = [
  ['', RangeError],
  ['x'.repeat(1025), RangeError],
  ['é'.repeat(513), RangeError],
  ['a\uD800', RangeError],
  ['\uDC00a', RangeError],
  [42, TypeError],
  [undefined, TypeError],
];

const VALUES = [
  { total: 7.5, items: ['apple', { size: 'Ü' }], at: null },
  'text',
  '',
  0,
  false,
  null,
  [],
  {},
  'a\nb\0c',
];

export const KEY_TEXTS: DeadlineCheckGroup = {
  name: 'keys',
  checks: {
    'takes any text of 1 to 1,024 bytes, and tells each from all others': async (t) => {
      const { deadlines, visits } = await t.visited();
      const outcomes = await deadlines.scheduleMany(
        visit,
        KEYS.map((key) => ({ key, in: '1h', data: key.length })),
      );
      assert.deepEqual(new Set(outcomes), new Set(['scheduled']));
      for (const key of KEYS) {
        const found = await deadlines.get(visit, key);
        assert.deepEqual([found?.key, found?.data], [key, key.length]);
      }
      assert.deepEqual((await deadlines.list(visit)).map(({ key }) => key).toSorted(), KEYS.toSorted());
      for (const key of KEYS) assert.equal(await deadlines.reschedule(visit, key, { in: 0 }), 'moved', key);
      await t.until(() => assert.deepEqual(visits.events.map(({ key }) => key).toSorted(), KEYS.toSorted()));
      for (const key of KEYS) assert.equal(await deadlines.cancel(visit, key), 'fired', key);
    },

    'refuses what cannot be a key, and quotes no key': async (t) => {
      const { deadlines } = await t.start();
      for (const [key, error] of REFUSED) {
        const calls = [
          () => deadlines.schedule(visit, key as string, { in: '1h' }),
          () =>
            deadlines.scheduleMany(visit, [
              { key: 'a', in: '1h' },
              { key: key as string, in: '1h' },
            ]),
          () => deadlines.reschedule(visit, key as string, { in: '1h' }),
          () => deadlines.cancel(visit, key as string),
          () => deadlines.get(visit, key as string),
          () => deadlines.list(visit, { after: { key: key as string, dueAt: 0 } }),
        ];
        for (const call of calls) {
          await assert.rejects(
            async () => call(),
            (thrown: Error) => {
              assert.ok(thrown instanceof error, String(thrown));
              assert.doesNotMatch(thrown.message, /xx|é|\p{Surrogate}/u);
              return true;
            },
          );
        }
      }
      assert.equal(await deadlines.count(visit), 0);
    },
  },
};

export const DATA: DeadlineCheckGroup = {
  name: 'data',
  checks: {
    'gives back the data that it was given, to get(), list() and handlers': async (t) => {
      const { deadlines, visits } = await t.visited();
      const given = VALUES.map((data, i) => ({ key: `${i}`, in: '1h', data }));
      await deadlines.scheduleMany(visit, given);
      const listed = (await deadlines.list(visit)).map(({ key, data }) => [key, data]);
      assert.deepEqual(Object.fromEntries(listed), Object.fromEntries(VALUES.entries()));
      for (const [i, data] of VALUES.entries()) {
        assert.deepEqual((await deadlines.get(visit, `${i}`))?.data, data);
        await deadlines.reschedule(visit, `${i}`, { in: 0 });
      }
      await t.until(() => assert.equal(visits.events.length, VALUES.length));
      for (const { key, data } of visits.events) assert.deepEqual(data, VALUES[Number(key)]);
    },

    'has undefined as the data of a deadline without data': async (t) => {
      const { deadlines, visits } = await t.visited();
      await deadlines.schedule(visit, 'a', { in: '1h', data: 1 });
      await deadlines.schedule(visit, 'a', { in: '1h' });
      assert.equal((await deadlines.get(visit, 'a'))?.data, undefined);
      assert.equal((await deadlines.list(visit))[0]?.data, undefined);
      await deadlines.reschedule(visit, 'a', { in: 0 });
      await t.until(() => assert.equal(visits.events.length, 1));
      assert.equal(visits.events[0]?.data, undefined);
    },

    'shares no object with who scheduled it': async (t) => {
      const { deadlines } = await t.start();
      const data = { items: ['apple'] };
      await deadlines.schedule(visit, 'a', { in: '1h', data });
      data.items.push('pear');
      const found = (await deadlines.get(visit, 'a'))?.data as typeof data;
      assert.deepEqual(found, { items: ['apple'] });
      found.items.push('plum');
      assert.deepEqual((await deadlines.get(visit, 'a'))?.data, { items: ['apple'] });
    },

    'refuses data that its serializer cannot give back, names where, and leaves what waits': async (t) => {
      const { deadlines } = await t.start();
      await deadlines.schedule(visit, 'a', { in: '1h', data: 'old' });
      const problem = { order: { paidAt: [new Date('2026-01-02T03:04:05Z')] } };
      const calls = [
        () => deadlines.schedule(visit, 'a', { in: '1h', data: problem }),
        () =>
          deadlines.scheduleMany(visit, [
            { key: 'b', in: '1h' },
            { key: 'a', in: '1h', data: problem },
          ]),
      ];
      for (const call of calls) {
        await assert.rejects(call, (error: unknown) => {
          assert.ok(error instanceof DeadlineDataError);
          assert.equal(error.deadlineName, visit.name);
          assert.match(error.message, /"contract\.visit" holds a value at \.order\.paidAt\[0\]/);
          assert.doesNotMatch(error.message, /2026/);
          return true;
        });
      }
      assert.equal((await deadlines.get(visit, 'a'))?.data, 'old');
      assert.equal(await deadlines.count(visit), 1);
    },
  },
};
