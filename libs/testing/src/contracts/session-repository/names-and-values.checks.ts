import assert from 'node:assert/strict';
import type { CheckGroup } from './check.group.js';

/** What means something in one place or another; as names of attributes and of principals nothing but themselves. */
export const NAMES: readonly string[] = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'then',
  'id',
  'creationTime',
  'maxInactiveInterval',
  ' ',
  'a',
  'A',
  ' a',
  'a ',
  'a.b',
  'a:b',
  'a/b',
  '$a',
  '%',
  '_',
  '*',
  '?',
  '[a]',
  '{x}',
  '\\',
  "'; --",
  '"',
  '\0',
  '\r\n',
  'ä',
  '\u00e9',
  'e\u0301',
  '😀',
  'n'.repeat(300),
];

const VALUES: readonly unknown[] = [
  '',
  ' ',
  '0',
  'null',
  0,
  -1.5,
  1e300,
  true,
  false,
  [],
  {},
  [null, [], {}],
  { nested: { list: [1, 'a', null] } },
  '\0',
  '\r\n',
  'ä \u2028 😀',
  '"quoted" \\ {x} % $1',
];

export const NAMES_AND_VALUES: CheckGroup = {
  name: 'names and values',
  checks: {
    'takes all names for attributes, and keeps them apart': async (t) => {
      const attributes = NAMES.map((name) => [name, `of ${name}`] as const);
      const { id } = await t.stored({}, (session) => {
        for (const [name, value] of attributes) session.setAttribute(name, value);
      });
      const session = await t.load(id);
      assert.deepEqual(session.attributeNames.toSorted(), NAMES.toSorted());
      for (const [name, value] of attributes) assert.equal(session.getAttribute(name), value);
      for (const name of NAMES.slice(1)) session.removeAttribute(name);
      session.setAttribute(NAMES[0]!, 'changed');
      await t.saves(session);
      const left = await t.load(id);
      assert.deepEqual(left.attributeNames, [NAMES[0]]);
      assert.equal(left.getAttribute(NAMES[0]!), 'changed');
    },

    'has no attributes that nobody has set': async (t) => {
      const { id } = await t.stored({ only: true });
      const session = await t.load(id);
      assert.deepEqual(session.attributeNames, ['only']);
      for (const name of NAMES) assert.equal(session.getAttribute(name), undefined, name);
    },

    'gives back every value as it was': async (t) => {
      const names = VALUES.map((_, i) => `value ${i}`);
      const { id } = await t.stored({}, (session) => names.forEach((name, i) => session.setAttribute(name, VALUES[i])));
      const session = await t.load(id);
      assert.deepEqual(
        names.map((name) => session.getAttribute(name)),
        VALUES,
      );
    },

    'takes a value of a megabyte, and a hundred attributes': async (t) => {
      const large = 'ä'.repeat(500_000);
      const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`name ${i}`, i]));
      const { id } = await t.stored({ large, ...many });
      assert.deepEqual(await t.attributesOf(id), { large, ...many });
    },
  },
};
