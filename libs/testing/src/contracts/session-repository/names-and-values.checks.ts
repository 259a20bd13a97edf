import assert from 'node:assert/strict';
import { SessionBoundError } from '@nest-session/core';
import type { CreateSession } from '@nest-session/core/store';
import type { CheckGroup } from './check.group.js';
import { BOUNDS, INTERVAL, SECOND } from './contract.context.js';

/** Names with a meaning somewhere: in JavaScript, Redis, SQL, paths or Unicode. A store must not give them one. */
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
  '\ufeffa',
  'a\u200b',
  'a\0b',
  'a\0c',
  'a.',
  '../a',
  'ａ',
  'ß',
  'ss',
  'i',
  'I',
  'ı',
  '1',
  '01',
  '1.0',
  '+',
  '%20',
  '😁',
  'null',
  'undefined',
  'n'.repeat(300),
  `${'n'.repeat(299)}m`,
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

// Texts of serializers other than the JSON one, or of JSON that is formatted differently.
const TEXTS: readonly string[] = [
  ' ',
  ' a',
  'a ',
  '\n',
  '\0',
  'a\0b',
  '\ufeffa',
  'NULL',
  'undefined',
  '1.0',
  '01',
  '{ "b":1, "a":2 }',
  '"\\u00e4"',
  '\u00e9',
  'e\u0301',
  '😀',
];

// Ids consist of 22 to 128 letters, digits, `-` and `_`.
const IDS: readonly string[] = [
  '_'.repeat(22),
  'a'.repeat(22),
  'A'.repeat(22),
  `${'a'.repeat(21)}A`,
  `${'a'.repeat(21)}_`,
  'a'.repeat(23),
  '-'.repeat(22),
  '0'.repeat(22),
  `0${'0'.repeat(22)}`,
  'a'.repeat(127),
  'a'.repeat(128),
  `${'a'.repeat(127)}b`,
];

function creationOf(id: string, attributes: ReadonlyMap<string, string>): CreateSession {
  const times = { maxInactiveInterval: INTERVAL / SECOND, absoluteTimeout: -1 };
  return { kind: 'create', id, presentedIds: [], ...times, attributes, indexes: new Map() };
}

export const NAMES_AND_VALUES: CheckGroup = {
  name: 'names and values',
  checks: {
    'accepts every attribute name, and keeps different names apart': async (t) => {
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

    'has no attributes that were not set': async (t) => {
      const { id } = await t.stored({ only: true });
      const session = await t.load(id);
      assert.deepEqual(session.attributeNames, ['only']);
      for (const name of NAMES) assert.equal(session.getAttribute(name), undefined, name);
    },

    'returns every value unchanged': async (t) => {
      const names = VALUES.map((_, i) => `value ${i}`);
      const { id } = await t.stored({}, (session) => names.forEach((name, i) => session.setAttribute(name, VALUES[i])));
      const session = await t.load(id);
      assert.deepEqual(
        names.map((name) => session.getAttribute(name)),
        VALUES,
      );
    },

    'accepts in an update what it accepts in a creation': async (t) => {
      const session = await t.stored();
      const attributes = NAMES.map((name, i) => [name, VALUES[i % VALUES.length]] as const);
      for (const [name, value] of attributes) session.setAttribute(name, value);
      await t.saves(session);
      const loaded = await t.load(session.id);
      for (const [name, value] of attributes) assert.deepEqual(loaded.getAttribute(name), value, name);
    },

    'returns every serialized text unchanged': async (t) => {
      const id = t.idFor((await t.stored()).id);
      const texts = new Map(TEXTS.map((text, i) => [`created ${i}`, text]));
      assert.equal((await t.write(creationOf(id, texts))).outcome, 'created');
      const more = new Map(TEXTS.map((text, i) => [`updated ${i}`, text]));
      await t.write({ kind: 'update', id, attributes: more, indexes: new Map() });
      assert.deepEqual(new Map((await t.recordOf(id)).attributes), new Map([...texts, ...more]));
    },

    'refuses what exceeds the bounds that it was given': async (t) => {
      const stored = await t.stored({ a: 1 });
      for (const node of [t.repository, t.other]) {
        const session = await t.load(stored.id, node);
        const refuses = (name: string, value: unknown) =>
          assert.throws(() => session.setAttribute(name, value), SessionBoundError);
        refuses('n'.repeat(BOUNDS.maxAttributeNameSize + 1), 1);
        refuses('large', 'x'.repeat(BOUNDS.maxAttributeSize));
        await assert.rejects(
          session.updateAttribute('a', () => 'x'.repeat(BOUNDS.maxAttributeSize)),
          SessionBoundError,
        );
        for (const name of ['b', 'c']) session.setAttribute(name, 'x'.repeat(1_900_000));
        refuses('d', 'x'.repeat(1_900_000));
        for (const name of ['b', 'c']) session.removeAttribute(name);
        for (let i = 1; i < BOUNDS.maxAttributes; i++) session.setAttribute(`name ${i}`, i);
        refuses('one more', 1);
      }
      assert.deepEqual(await t.attributesOf(stored.id), { a: 1 });
    },

    'accepts every well-formed id, and keeps different ids apart': async (t) => {
      for (const [i, id] of IDS.entries()) {
        assert.equal((await t.write(creationOf(id, new Map([['i', `${i}`]])))).outcome, 'created', id);
      }
      const found = await t.repository.findByIds(IDS);
      assert.deepEqual(
        found.map((session) => [session?.id, session?.getAttribute('i')]),
        IDS.map((id, i) => [id, i]),
      );
      for (const id of IDS) {
        assert.equal(await t.repository.touch(await t.load(id)), 'touched', id);
        assert.equal(await t.repository.deleteById(id), true, id);
        assert.equal(await t.repository.deleteById(id), false, id);
        await t.isOver(id);
      }
    },

    'distinguishes ids that differ in case alone': async (t) => {
      const session = await t.stored();
      for (const id of [session.id.toLowerCase(), session.id.toUpperCase()]) {
        assert.equal(await t.repository.findById(id), null);
        assert.equal(await t.repository.deleteById(id), false);
      }
      await t.load(session.id);
    },

    'accepts a value of a megabyte, and a thousand attributes': async (t) => {
      const large = 'ä'.repeat(500_000);
      const many = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`name ${i}`, i]));
      const session = await t.stored({ large, ...many });
      assert.deepEqual(await t.attributesOf(session.id), { large, ...many });
      const larger = 'ö'.repeat(600_000);
      session.setAttribute('large', larger);
      await t.saves(session);
      assert.deepEqual(await t.attributesOf(session.id), { large: larger, ...many });
    },
  },
};
