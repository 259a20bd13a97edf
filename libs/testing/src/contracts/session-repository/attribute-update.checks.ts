import assert from 'node:assert/strict';
import type { UpdateSession } from '@nest-session/core/store';
import type { CheckGroup } from './check.group.js';
import { NAMES } from './names-and-values.checks.js';
import { MINUTE } from './contract.context.js';

// Pairs that look alike, or that the collation of a database treats as equal.
const ALIKE: readonly (readonly [string, string])[] = [
  ['"a"', '"A"'],
  ['"a"', '"a" '],
  ['"a"', '"ä"'],
  ['"\u00e9"', '"e\u0301"'],
  ['1', '1.0'],
  ['"1"', '1'],
  ['"😀"', '"😁"'],
  ['a\0b', 'a\0c'],
  ['{"a":1,"b":2}', '{"b":2,"a":1}'],
  ['[]', '[ ]'],
  [`"${'n'.repeat(100_000)}1"`, `"${'n'.repeat(100_000)}2"`],
];

function update(id: string, text: string | null, expected: string | undefined): UpdateSession {
  const attributes = new Map([['n', text]]);
  return { kind: 'update', id, attributes, indexes: new Map(), expected: { name: 'n', text: expected } };
}

export const ATTRIBUTE_UPDATE: CheckGroup = {
  name: 'attribute update',
  checks: {
    'keeps every change of many concurrent requests': async (t) => {
      const { id } = await t.stored({ n: 0, kept: true });
      for (let round = 0; round < 5; round++) {
        const loads = Array.from({ length: 10 }, (_, i) => t.load(id, i % 2 === 0 ? t.repository : t.other));
        const sessions = await Promise.all(loads);
        await Promise.all(sessions.map((session) => session.updateAttribute<number>('n', (n = 0) => n + 1)));
      }
      assert.deepEqual(await t.attributesOf(id), { n: 50, kept: true });
    },

    'writes nothing when the stored text is another one, and returns that text': async (t) => {
      const { id } = await t.stored({ n: 1 });
      assert.deepEqual(await t.write(update(id, '3', '2')), { outcome: 'conflict', current: '1' });
      assert.deepEqual(await t.write(update(id, '3', undefined)), { outcome: 'conflict', current: '1' });
      assert.deepEqual(await t.write(update(id, null, '2')), { outcome: 'conflict', current: '1' });
      assert.deepEqual(await t.attributesOf(id), { n: 1 });
    },

    'writes nothing when a text is expected and none is stored, and returns none': async (t) => {
      const { id } = await t.stored({ a: 1 });
      assert.deepEqual(await t.write(update(id, '3', '2')), { outcome: 'conflict', current: undefined });
      assert.deepEqual(await t.attributesOf(id), { a: 1 });
    },

    'writes when the stored text, or its absence, is as expected': async (t) => {
      const { id } = await t.stored({ a: 1 });
      assert.deepEqual(await t.write(update(id, '1', undefined)), { outcome: 'saved' });
      assert.deepEqual(await t.write(update(id, '2', '1')), { outcome: 'saved' });
      assert.deepEqual(await t.attributesOf(id), { a: 1, n: 2 });
      assert.deepEqual(await t.write(update(id, null, '2')), { outcome: 'saved' });
      assert.deepEqual(await t.attributesOf(id), { a: 1 });
      assert.deepEqual(await t.write(update(id, '3', undefined)), { outcome: 'saved' });
      assert.deepEqual(await t.attributesOf(id), { a: 1, n: 3 });
    },

    'is a conflict also when another request has written the same text': async (t) => {
      const { id } = await t.stored({ n: 1 });
      assert.deepEqual(await t.write(update(id, '2', '1')), { outcome: 'saved' });
      assert.deepEqual(await t.write(update(id, '2', '1')), { outcome: 'conflict', current: '2' });
    },

    'compares texts character by character': async (t) => {
      const { id } = await t.stored({ a: 1 });
      let last: string | undefined;
      for (const [text, alike] of ALIKE) {
        assert.deepEqual(await t.write(update(id, text, last)), { outcome: 'saved' });
        assert.deepEqual(await t.write(update(id, 'null', alike)), { outcome: 'conflict', current: text });
        last = text;
      }
    },

    'accepts every name, and compares that attribute alone': async (t) => {
      const attributes = Object.fromEntries(NAMES.filter((name) => name !== '__proto__').map((name, i) => [name, i]));
      const { id } = await t.stored(attributes);
      const updateOf = (name: string, text: string) => ({ ...update(id, null, text), expected: { name, text } });
      for (const [name, value] of Object.entries(attributes)) {
        // The text of the name before, which may look like this one.
        const conflict = await t.write(updateOf(name, String(value - 1)));
        assert.deepEqual(conflict, { outcome: 'conflict', current: String(value) }, name);
      }
      for (const [name, value] of Object.entries(attributes)) {
        assert.deepEqual(await t.write(updateOf(name, String(value))), { outcome: 'saved' }, name);
      }
    },

    'neither writes other changes nor renews the session on a conflict': async (t) => {
      const { id } = await t.stored({ n: 1 });
      await t.advance(20 * MINUTE);
      const change = update(id, '3', '2');
      const attributes = new Map([...change.attributes, ['other', '1']]);
      const { outcome } = await t.write({ ...change, attributes, maxInactiveInterval: -1, newId: t.idFor(id) });
      assert.equal(outcome, 'conflict');
      assert.deepEqual(await t.attributesOf(id), { n: 1 });
      await t.advance(10 * MINUTE + 1);
      await t.isOver(id);
    },

    'writes all changes of the step when the comparison succeeds': async (t) => {
      const { id } = await t.stored({ n: 1, removed: 1, kept: 1 });
      const change = update(id, '2', '1');
      const attributes = new Map([...change.attributes, ['other', '1'], ['removed', null]]);
      assert.deepEqual(await t.write({ ...change, attributes, maxInactiveInterval: 600 }), { outcome: 'saved' });
      assert.deepEqual(await t.attributesOf(id), { n: 2, kept: 1, other: 1 });
      assert.equal((await t.load(id)).maxInactiveInterval, 600);
    },

    'calls the function again with the value that another request has stored': async (t) => {
      const { id } = await t.stored({ items: ['a'] });
      const [one, two] = [await t.load(id), await t.load(id, t.other)];
      const add = (item: string) => (items: string[] | undefined) => [...(items ?? []), item];
      assert.deepEqual(await one.updateAttribute('items', add('b')), ['a', 'b']);
      assert.deepEqual(await two.updateAttribute('items', add('c')), ['a', 'b', 'c']);
      assert.deepEqual(await t.attributesOf(id), { items: ['a', 'b', 'c'] });
    },

    'adds and removes attributes': async (t) => {
      const { id } = await t.stored({ a: 1 });
      assert.equal(await (await t.load(id)).updateAttribute('n', () => 1), 1);
      assert.equal(await (await t.load(id)).updateAttribute('n', () => undefined), undefined);
      assert.deepEqual(await t.attributesOf(id), { a: 1 });
    },

    'renews the session unless the request keeps it idle': async (t) => {
      const [used, idle] = [await t.stored(), await t.stored()];
      await t.advance(20 * MINUTE);
      idle.keepIdle();
      for (const session of [used, idle]) await session.updateAttribute('a', () => 2);
      await t.advance(10 * MINUTE + 1);
      assert.deepEqual(await t.attributesOf(used.id), { a: 2 });
      await t.isOver(idle.id);
    },
  },
};
