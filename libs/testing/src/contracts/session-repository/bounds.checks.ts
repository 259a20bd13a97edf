import assert from 'node:assert/strict';
import { SessionBoundError } from '@nest-session/core';
import { isOwnAttribute, storePrimitivesOf, PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import type { UpdateSession } from '@nest-session/core/store';
import { ROUNDS } from './at-once.js';
import type { CheckGroup } from './check.group.js';
import { BOUNDS, type ContractContext, INTERVAL, SECOND } from './contract.context.js';

const OWN = [
  PRINCIPAL_ATTRIBUTE,
  'nest-session.visitor.csrf',
  'nest-session.visitor.device',
  'nest-session.visitor.turn',
  'nest-session.rememberMe',
  'nest-session.cookieMaxAge',
  'nest-session.initialized',
  'nest-session.provider',
];

const FEW = { maxAttributes: 10, maxSessionSize: 100_000 };
const SMALL = { maxAttributes: 100, maxSessionSize: 10_000 };

/** A text of this many bytes in UTF-8, and fewer characters. */
const textOf = (bytes: number) => `"${'ä'.repeat(bytes / 2 - 1)}"`;

type Texts = Readonly<Record<string, string | null>>;

function update(id: string, texts: Texts, others: Partial<UpdateSession> = {}): UpdateSession {
  return { kind: 'update', id, attributes: new Map(Object.entries(texts)), indexes: new Map(), ...others };
}

function named(prefix: string, count: number, text = '1'): Texts {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`${prefix}${i}`, text]));
}

/** The bytes of what the session holds, and the number of its attributes. */
async function contentOf(t: ContractContext, id: string): Promise<{ attributes: number; bytes: number }> {
  const { attributes } = await t.recordOf(id);
  const texts = [...attributes].filter(([name]) => !isOwnAttribute(name));
  const bytes = texts.reduce(
    (sum, [name, text]) => sum + Buffer.byteLength(`${name}${typeof text === 'string' ? text : ''}`),
    0,
  );
  return { attributes: texts.length, bytes };
}

/** The outcomes of updates that are made at once, by both nodes. */
async function outcomesOf(t: ContractContext, updates: readonly UpdateSession[]): Promise<string[]> {
  const nodes = [t.repository, t.other];
  const replies = updates.map((each, i) => storePrimitivesOf(nodes[i % 2]!).write(each));
  return (await Promise.all(replies)).map(({ outcome }) => outcome).toSorted();
}

const FULL = { maxAttributes: { outcome: 'full', bound: 'maxAttributes' } as const };
const TOO_LARGE = { outcome: 'full', bound: 'maxSessionSize' } as const;

export const SESSION_BOUNDS: CheckGroup = {
  name: 'bounds of a session',
  checks: {
    'hold for updates at once, of which as many are made as there is room for': async (t) => {
      for (let round = 0; round < ROUNDS; round++) {
        const few = await t.stored();
        const adding = Array.from({ length: 30 }, (_, i) => update(few.id, { [`b${i}`]: '1' }, { bounds: FEW }));
        assert.deepEqual(await outcomesOf(t, adding), [...Array(21).fill('full'), ...Array(9).fill('saved')]);
        assert.equal((await contentOf(t, few.id)).attributes, 10);
        const small = await t.stored();
        const text = textOf(998);
        const growing = Array.from({ length: 20 }, (_, i) =>
          update(small.id, { [`b${i % 10}${round}`]: text }, { bounds: SMALL }),
        );
        const outcomes = await outcomesOf(t, growing);
        assert.ok(outcomes.includes('full'));
        assert.ok((await contentOf(t, small.id)).bytes <= SMALL.maxSessionSize);
      }
    },

    'say which one would be exceeded, and nothing is written': async (t) => {
      const { id } = await t.stored({ a: 1 });
      const [few, small] = [{ bounds: FEW }, { bounds: SMALL }];
      assert.deepEqual(await t.write(update(id, { ...named('b', 10), a: '2' }, few)), FULL.maxAttributes);
      assert.deepEqual(await t.write(update(id, { a: '2', b: textOf(10_000) }, small)), TOO_LARGE);
      const expected = { name: 'a', text: '1' };
      assert.deepEqual(await t.write(update(id, { a: textOf(10_000) }, { ...small, expected })), TOO_LARGE);
      const newId = t.idFor(id);
      assert.deepEqual(await t.write(update(id, named('b', 10), { ...few, newId })), FULL.maxAttributes);
      await t.isOver(newId);
      assert.deepEqual(await t.attributesOf(id), { a: 1 });
      assert.deepEqual(await t.write(update(id, named('b', 9), few)), { outcome: 'saved' });
      assert.deepEqual(await t.write(update(id, { b0: textOf(9000) }, small)), { outcome: 'saved' });
    },

    'count what is there: neither what is replaced, nor what is removed': async (t) => {
      const { id } = await t.stored();
      for (let i = 0; i < 20; i++) {
        const one = { a: textOf(6000), [`b${i}`]: '1', [`b${i - 1}`]: null };
        assert.deepEqual(await t.write(update(id, one, { bounds: SMALL })), { outcome: 'saved' });
        const other = { a: null, c: textOf(6000) };
        assert.deepEqual(await t.write(update(id, other, { bounds: SMALL })), { outcome: 'saved' });
        assert.deepEqual(await t.write(update(id, { c: '1' }, { bounds: SMALL })), { outcome: 'saved' });
      }
      assert.deepEqual(await t.attributesOf(id), { b19: 1, c: 1 });
      assert.deepEqual(await t.write(update(id, { c: textOf(6000), d: textOf(3000) }, { bounds: SMALL })), {
        outcome: 'saved',
      });
      // Of what is removed, a store that counts roughly learns the size only by counting everything.
      const replacing = { c: textOf(6000), d: null, e: textOf(3500) };
      assert.deepEqual(await t.write(update(id, replacing, { bounds: SMALL })), { outcome: 'saved' });
    },

    'leave a session that exceeds them changeable, as long as it does not grow': async (t) => {
      const { id } = await t.stored();
      await t.write(update(id, named('b', 20, textOf(1000)), { bounds: BOUNDS }));
      const { bytes } = await contentOf(t, id);
      for (const bounds of [FEW, SMALL]) {
        assert.deepEqual(await t.write(update(id, { b0: textOf(1000), b1: '1' }, { bounds })), { outcome: 'saved' });
        assert.deepEqual(await t.write(update(id, { b1: textOf(1000) }, { bounds: FEW })), { outcome: 'saved' });
      }
      assert.equal((await contentOf(t, id)).bytes, bytes);
      assert.deepEqual(await t.write(update(id, { b1: textOf(1002) }, { bounds: SMALL })), TOO_LARGE);
      assert.deepEqual(await t.write(update(id, { d: '1' }, { bounds: FEW })), FULL.maxAttributes);
      assert.deepEqual(await t.write(update(id, { b2: null, d: '1' }, { bounds: FEW })), { outcome: 'saved' });
    },

    "do not count the library's own attributes": async (t) => {
      assert.ok(OWN.every((name) => isOwnAttribute(name)));
      const { id } = await t.stored();
      assert.deepEqual(await t.write(update(id, named('b', 9), { bounds: FEW })), { outcome: 'saved' });
      const texts = Object.fromEntries(OWN.map((name) => [name, textOf(4000)]));
      for (const bounds of [FEW, SMALL]) {
        assert.deepEqual(await t.write(update(id, texts, { bounds })), { outcome: 'saved' });
        assert.deepEqual(await t.write(update(id, { b0: textOf(9000), d: null }, { bounds })), { outcome: 'saved' });
        assert.deepEqual(await t.write(update(id, { b0: null, d: textOf(9200) }, { bounds })), { outcome: 'saved' });
      }
    },

    'neither keep anybody from signing in, nor a session from ending': async (t) => {
      const { id } = await t.stored();
      await t.write(update(id, named('b', 9, textOf(1000)), { bounds: FEW }));
      const times = { maxInactiveInterval: INTERVAL / SECOND, absoluteTimeout: -1 };
      const newId = t.idFor(id);
      const signIn = { newId, signIn: { butNot: [] }, ...times, bounds: FEW };
      const { outcome } = await t.write(update(id, { [PRINCIPAL_ATTRIBUTE]: '"ann"', since: '1' }, signIn));
      assert.equal(outcome, 'saved');
      assert.deepEqual(await t.write(update(newId, { more: '1' }, { bounds: FEW })), FULL.maxAttributes);
      const end = update(newId, { more: '1' }, { bounds: FEW, maxInactiveInterval: 0 });
      assert.deepEqual(await t.write(end), { outcome: 'saved' });
      await t.isOver(newId);
    },

    'count only what a session keeps that is cleared': async (t) => {
      const { id } = await t.stored();
      await t.write(update(id, named('b', 9, textOf(1000)), { bounds: FEW }));
      const newId = t.idFor(id);
      const cleared = update(id, named('c', 10, textOf(900)), { newId, clears: true, bounds: FEW });
      assert.deepEqual(await t.write(cleared), { outcome: 'saved' });
      assert.deepEqual(await t.write(update(newId, { d: '1' }, { bounds: FEW })), FULL.maxAttributes);
      // Also what it has again under the same names.
      const again = (count: number) =>
        update(newId, named('c', count), { newId: t.idFor(newId), clears: true, bounds: FEW });
      assert.deepEqual(await t.write(again(11)), FULL.maxAttributes);
      assert.deepEqual(await t.write(again(10)), { outcome: 'saved' });
    },

    'hold for a change of an old id': async (t) => {
      const session = await t.stored();
      const { id } = session;
      await t.rotates(session);
      assert.deepEqual(await t.write(update(id, named('b', 10), { bounds: FEW })), FULL.maxAttributes);
      assert.deepEqual(await t.write(update(id, named('b', 9), { bounds: FEW })), { outcome: 'forwarded' });
      assert.equal((await contentOf(t, session.id)).attributes, 10);
    },

    'that are not set restrict nothing': async (t) => {
      const { id } = await t.stored();
      const none = { maxAttributes: Infinity, maxSessionSize: Infinity };
      const [few, small] = [
        { ...none, maxAttributes: 400 },
        { ...none, maxSessionSize: 500_000 },
      ];
      assert.deepEqual(await t.write(update(id, named('b', 399, textOf(1000)), { bounds: few })), { outcome: 'saved' });
      assert.deepEqual(await t.write(update(id, { d: '1' }, { bounds: few })), FULL.maxAttributes);
      assert.deepEqual(await t.write(update(id, named('e', 300), { bounds: small })), { outcome: 'saved' });
      assert.deepEqual(await t.write(update(id, { e0: textOf(100_000) }, { bounds: small })), TOO_LARGE);
      assert.deepEqual(await t.write(update(id, { e0: textOf(300_000) }, { bounds: none })), { outcome: 'saved' });
      assert.deepEqual(await t.write(update(id, named('f', 300, textOf(1000)))), { outcome: 'saved' });
    },

    'refuse the save of a request that another one has left no room, and its update of an attribute': async (t) => {
      const { id } = await t.stored({ a: 1 });
      const text = 'x'.repeat(1_500_000);
      const [first, second, third, fourth] = await Promise.all([t.load(id), t.load(id), t.load(id), t.load(id)]);
      first.setAttribute('b', text);
      second.setAttribute('c', text);
      third.setAttribute('d', text);
      await t.saves(first);
      await t.saves(second);
      const tooLarge = (error: unknown) =>
        error instanceof SessionBoundError && error.bound === 'maxSessionSize' && error.attributeName === 'd';
      await assert.rejects(third.save(), tooLarge);
      await assert.rejects(
        fourth.updateAttribute('d', () => text),
        tooLarge,
      );
      assert.equal(third.isDirty, true);
      assert.deepEqual(Object.keys(await t.attributesOf(id)), ['a', 'b', 'c']);
      assert.ok((await contentOf(t, id)).bytes < BOUNDS.maxSessionSize);
    },
  },
};
