import assert from 'node:assert/strict';
import { IndexedSessionRepository, PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import { TrackedSession, PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import { ROUNDS } from './at-once.js';
import type { CheckGroup } from './check.group.js';
import { NAMES } from './names-and-values.checks.js';
import { DAY, INTERVAL, MINUTE, SECOND, type ContractContext } from './contract.context.js';

const signedInAs = (name: string) => (session: { principalName: string | undefined }) => {
  session.principalName = name;
};

/** The ids of the sessions of a principal; asserts that both nodes find the same. */
async function idsOf(t: ContractContext, name: string): Promise<string[]> {
  const { indexed, other } = t;
  assert.ok(other instanceof IndexedSessionRepository);
  const found = await Promise.all([
    indexed.findByPrincipalName(name),
    other.findByIndex(PRINCIPAL_NAME_INDEX_NAME, name),
  ]);
  const [ids, elsewhere] = found.map((sessions) => sessions.map(({ id }) => id).toSorted());
  assert.deepEqual(elsewhere, ids);
  return ids!;
}

export const INDEX: CheckGroup = {
  name: 'index',
  needs: 'indexes',
  checks: {
    'finds the sessions of a principal, and no others': async (t) => {
      const [one, two] = [await t.stored({ n: 1 }, signedInAs('ann')), await t.stored({ n: 2 }, signedInAs('ann'))];
      await t.stored({ n: 3 }, signedInAs('bob'));
      await t.stored({ n: 4 });
      assert.deepEqual(await idsOf(t, 'ann'), [one.id, two.id].toSorted());
      assert.deepEqual(await idsOf(t, 'carol'), []);
      const found = await t.indexed.findByPrincipalName('ann');
      assert.deepEqual(new Set(found.map((session) => session.getAttribute('n'))), new Set([1, 2]));
      assert.deepEqual(await t.indexed.findByIndex('another index', 'ann'), []);
    },

    'finds sessions that can be changed like any others': async (t) => {
      await t.stored({ a: 1 }, signedInAs('ann'));
      const [found] = await t.indexed.findByPrincipalName('ann');
      found!.setAttribute('a', 2);
      await t.saves(found!);
      assert.equal((await t.load(found!.id)).getAttribute('a'), 2);
      found!.invalidate();
      await t.saves(found!);
      assert.deepEqual(await idsOf(t, 'ann'), []);
    },

    'finds all of many sessions': async (t) => {
      const ids: string[] = [];
      for (let i = 0; i < 150; i++) ids.push((await t.stored({ i }, signedInAs('ann'))).id);
      assert.deepEqual(await idsOf(t, 'ann'), ids.toSorted());
    },

    'finds sessions with the same content as a lookup by id': async (t) => {
      const { id } = await t.stored({ a: 1, b: ['x'] }, (session) => {
        session.principalName = 'ann';
        session.maxInactiveInterval = 600;
        session.absoluteTimeout = 7200;
      });
      await t.advance(MINUTE);
      await t.repository.touch(await t.load(id));
      await t.advance(MINUTE);
      const [first] = await t.indexed.findByPrincipalName('ann');
      assert.ok(first, 'The session is not found');
      const found = TrackedSession.of(first);
      assert.deepEqual(found.toJSON(), (await t.load(id)).toJSON());
      assert.deepEqual([found.getAttribute('b'), found.principalName], [['x'], 'ann']);
      t.isAbout(found.idleTime!, MINUTE);
    },

    'lists sessions without a principal under no name': async (t) => {
      const session = await t.stored({ a: 1 }, signedInAs('ann'));
      session.principalName = undefined;
      await t.saves(session);
      await t.stored();
      for (const name of ['', '5', 'null', 'undefined']) assert.deepEqual(await idsOf(t, name), []);
    },

    'changes independently of the other indexes of a session': async (t) => {
      const id = t.idFor((await t.stored()).id);
      const find = async (name: string, value: string) =>
        (await t.indexed.findByIndex(name, value)).map((session) => session.id);
      const nothing = { presentedIds: [], attributes: new Map(), indexes: new Map() };
      const times = { maxInactiveInterval: INTERVAL / SECOND, absoluteTimeout: -1 };
      const indexes = new Map([
        ['one', 'x'],
        ['two', 'x'],
      ]);
      await t.write({ ...nothing, kind: 'create', id, ...times, indexes });
      await t.write({ ...nothing, kind: 'update', id, indexes: new Map([['one', 'y']]) });
      assert.deepEqual([await find('one', 'x'), await find('one', 'y')], [[], [id]]);
      assert.deepEqual([await find('two', 'x'), await find('two', 'y')], [[id], []]);
      const [second, third] = [t.idFor(id), t.idFor(id)];
      await t.write({ ...nothing, kind: 'update', id, newId: second });
      assert.deepEqual([await find('one', 'y'), await find('two', 'x')], [[second], [second]]);
      await t.write({ ...nothing, kind: 'update', id: second, newId: third, indexes: new Map([['one', null]]) });
      assert.deepEqual([await find('one', 'y'), await find('two', 'x')], [[], [third]]);
    },

    'follows the principal of a session, also back to an earlier one': async (t) => {
      const session = await t.stored();
      for (const name of ['ann', 'bob', 'bob', 'ann', 'bob']) {
        session.principalName = name;
        await t.saves(session);
        assert.deepEqual(await idsOf(t, name), [session.id]);
      }
      assert.deepEqual(await idsOf(t, 'ann'), []);
      session.principalName = undefined;
      await t.saves(session);
      assert.deepEqual(await idsOf(t, 'bob'), []);
    },

    'follows a principal that an attribute update sets': async (t) => {
      const { id } = await t.stored();
      const update = (before: string | undefined, after: string | null) => {
        const expected = { name: PRINCIPAL_ATTRIBUTE, text: before && JSON.stringify(before) };
        const attributes = new Map([[PRINCIPAL_ATTRIBUTE, after && JSON.stringify(after)]]);
        const indexes = new Map([[PRINCIPAL_NAME_INDEX_NAME, after]]);
        return t.write({ kind: 'update', id, attributes, indexes, expected });
      };
      assert.deepEqual(await update(undefined, 'ann'), { outcome: 'saved' });
      assert.deepEqual(await idsOf(t, 'ann'), [id]);
      assert.deepEqual(await update('ann', null), { outcome: 'saved' });
      assert.deepEqual(await idsOf(t, 'ann'), []);
    },

    'follows a principal that signs in, again or in place of another one': async (t) => {
      const session = await t.stored();
      for (const name of ['ann', 'ann', 'bob']) {
        session.signIn(name);
        await t.saves(session);
        assert.deepEqual(await idsOf(t, name), [session.id]);
      }
      assert.deepEqual(await idsOf(t, 'ann'), []);
    },

    'keeps a session that is saved, touched and updated': async (t) => {
      const session = await t.stored({ n: 0 }, signedInAs('ann'));
      session.setAttribute('a', 1);
      await t.saves(session);
      await t.repository.touch(session);
      await session.updateAttribute<number>('n', (n = 0) => n + 1);
      session.maxInactiveInterval = -1;
      await t.saves(session);
      await t.advance(400 * DAY);
      assert.deepEqual(await idsOf(t, 'ann'), [session.id]);
    },

    'follows a session through a rotation': async (t) => {
      const session = await t.stored({ a: 1 }, signedInAs('ann'));
      await t.rotates(session);
      assert.deepEqual(await idsOf(t, 'ann'), [session.id]);
      session.principalName = 'bob';
      await t.rotates(session);
      assert.deepEqual(await idsOf(t, 'ann'), []);
      assert.deepEqual(await idsOf(t, 'bob'), [session.id]);
      session.principalName = undefined;
      await t.rotates(session);
      assert.deepEqual(await idsOf(t, 'bob'), []);
    },

    'keeps the other sessions of a principal': async (t) => {
      const open = () => t.stored({ a: 1 }, signedInAs('ann'));
      const [kept, renamed, removed] = [await open(), await open(), await open()];
      const [rotated, deleted] = [await open(), await open()];
      renamed.principalName = 'bob';
      removed.principalName = undefined;
      for (const session of [renamed, removed]) await t.saves(session);
      await t.rotates(rotated);
      await t.repository.deleteById(deleted.id);
      assert.deepEqual(await idsOf(t, 'ann'), [kept.id, rotated.id].toSorted());
      assert.deepEqual(await idsOf(t, 'bob'), [renamed.id]);
      assert.equal((await t.load(kept.id)).principalName, 'ann');
    },

    'has no ended session, however it ended': async (t) => {
      const open = () => t.stored({ a: 1 }, signedInAs('ann'));
      const [deleted, invalidated, ended] = [await open(), await open(), await open()];
      const [limited, idle, kept] = [await open(), await open(), await open()];
      await t.repository.deleteById(deleted.id);
      invalidated.invalidate();
      await t.saves(invalidated);
      ended.maxInactiveInterval = 0;
      await t.saves(ended);
      limited.absoluteTimeout = 10 * 60;
      await t.saves(limited);
      assert.deepEqual(await idsOf(t, 'ann'), [limited.id, idle.id, kept.id].toSorted());
      await t.advance(20 * MINUTE);
      assert.deepEqual(await idsOf(t, 'ann'), [idle.id, kept.id].toSorted());
      await t.repository.touch(kept);
      await t.advance(20 * MINUTE);
      assert.deepEqual(await idsOf(t, 'ann'), [kept.id]);
      await t.reportExpired();
      assert.deepEqual(await idsOf(t, 'ann'), [kept.id]);
    },

    'is not changed by a request that is refused': async (t) => {
      const [over, moved] = [await t.stored({ a: 1 }, signedInAs('ann')), await t.stored({ a: 1 }, signedInAs('ann'))];
      const late = [await t.load(over.id), await t.load(moved.id)];
      await t.repository.deleteById(over.id);
      await t.rotates(moved);
      for (const session of late) {
        session.principalName = 'mallory';
        assert.equal(await session.save(), 'gone');
      }
      assert.deepEqual(await idsOf(t, 'mallory'), []);
      assert.deepEqual(await idsOf(t, 'ann'), [moved.id]);
    },

    'is not changed by an update that is a conflict, nor by a rotation to an id that is taken': async (t) => {
      const session = await t.stored({ a: 1 }, signedInAs('ann'));
      let other = await t.stored();
      while (!t.mayReplace(other.id, session.id)) other = await t.stored();
      const indexes = new Map([[PRINCIPAL_NAME_INDEX_NAME, 'mallory']]);
      const change = { kind: 'update', id: session.id, attributes: new Map(), indexes } as const;
      const conflict = await t.write({ ...change, expected: { name: 'a', text: '2' } });
      assert.equal(conflict.outcome, 'conflict');
      assert.deepEqual(await t.write({ ...change, newId: other.id }), { outcome: 'collision' });
      assert.deepEqual(await idsOf(t, 'ann'), [session.id]);
      assert.deepEqual(await idsOf(t, 'mallory'), []);
    },

    'accepts every name, and finds sessions by exactly that name': async (t) => {
      const ids = new Map<string, string>();
      // These two are what a missing name becomes: nobody may be signed in by them.
      const names = NAMES.filter((name) => name !== 'null' && name !== 'undefined');
      for (const name of names) ids.set(name, (await t.stored({}, signedInAs(name))).id);
      for (const [name, id] of ids) assert.deepEqual(await idsOf(t, name), [id], JSON.stringify(name));
      for (const [name, id] of ids) {
        const session = await t.load(id);
        await t.rotates(session);
        ids.set(name, session.id);
        assert.deepEqual(await idsOf(t, name), [session.id], JSON.stringify(name));
      }
      await t.repository.deleteById(ids.get('*')!);
      for (const name of ['*', 'a', '_']) assert.deepEqual(await idsOf(t, name), name === '*' ? [] : [ids.get(name)]);
    },

    'misses no live session during a rotation': async (t) => {
      const session = await t.stored({ a: 1 }, signedInAs('ann'));
      for (let round = 0; round < ROUNDS; round++) {
        const finding = t.indexed.findByPrincipalName('ann');
        const rotating = t.rotates(session);
        const found = await finding;
        await rotating;
        assert.equal(found.length, 1);
      }
    },

    'finds each session once, and nothing but sessions, while others are created and deleted': async (t) => {
      for (let round = 0; round < ROUNDS; round++) {
        const [one, two] = [await t.stored({ n: 1 }, signedInAs('ann')), await t.stored({ n: 2 }, signedInAs('ann'))];
        const finding = t.indexed.findByPrincipalName('ann');
        await Promise.all([t.rotates(one), t.repository.deleteById(two.id)]);
        const numbers = (await finding).map((session) => session.getAttribute('n'));
        assert.deepEqual(numbers, [...new Set(numbers)]);
        assert.ok(numbers.includes(1));
        assert.deepEqual(await idsOf(t, 'ann'), [one.id]);
        await t.repository.deleteById(one.id);
      }
    },

    'finds a session only under the principal that it has': async (t) => {
      const session = await t.stored({ n: 1 }, signedInAs('ann'));
      for (let round = 0; round < ROUNDS; round++) {
        const finding = ['ann', 'bob'].map(async (name) => [name, await t.indexed.findByPrincipalName(name)] as const);
        session.principalName = round % 2 === 0 ? 'bob' : 'ann';
        await session.save();
        for (const [name, found] of await Promise.all(finding)) {
          for (const { principalName } of found) assert.equal(principalName, name);
        }
      }
    },

    'agrees with the session after two concurrent changes of the principal': async (t) => {
      for (let round = 0; round < ROUNDS; round++) {
        const { id } = await t.stored();
        const [one, two] = [await t.load(id), await t.load(id, t.other)];
        one.principalName = 'ann';
        two.principalName = 'bob';
        await Promise.all([one.save(), two.save()]);
        const name = (await t.load(id)).principalName!;
        assert.deepEqual(await idsOf(t, name), [id]);
        assert.deepEqual(await idsOf(t, name === 'ann' ? 'bob' : 'ann'), []);
        await t.repository.deleteById(id);
      }
    },

    'has no session that is signed in while it ends': async (t) => {
      for (let round = 0; round < ROUNDS; round++) {
        const { id } = await t.stored();
        const session = await t.load(id, t.other);
        session.principalName = 'ann';
        const [outcome, isDeleted] = await Promise.all([session.save(), t.repository.deleteById(id)]);
        assert.ok(outcome === 'saved' || outcome === 'gone');
        assert.equal(isDeleted, true);
        assert.deepEqual(await idsOf(t, 'ann'), []);
      }
    },
  },
};
