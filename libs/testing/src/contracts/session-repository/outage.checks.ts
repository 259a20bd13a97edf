import assert from 'node:assert/strict';
import { IndexedSessionRepository, SessionStoreError } from '@nest-session/core';
import type { CheckGroup } from './check.group.js';

export const OUTAGES: CheckGroup = {
  name: 'outages',
  needs: 'outages',
  checks: {
    'are errors of whatever is asked of the store, and never an absence': async (t) => {
      const session = await t.stored({ n: 0 }, (each) => (each.principalName = 'ann'));
      const { repository } = t;
      await t.outage(async () => {
        await assert.rejects(repository.findById(session.id), SessionStoreError);
        await assert.rejects(repository.findByIds([session.id]), SessionStoreError);
        await assert.rejects(repository.deleteById(session.id), SessionStoreError);
        await assert.rejects(repository.touch(session), SessionStoreError);
        const update = session.updateAttribute<number>('n', (n = 0) => n + 1);
        await assert.rejects(update, SessionStoreError);
        if (repository instanceof IndexedSessionRepository) {
          await assert.rejects(repository.findByPrincipalName('ann'), SessionStoreError);
        }
      });
      assert.equal((await t.load(session.id)).getAttribute('n'), 0);
    },

    'are errors of each step, and never an answer': async (t) => {
      const { id } = await t.stored();
      const nothing = { presentedIds: [], attributes: new Map<string, string>(), indexes: new Map<string, string>() };
      const times = { maxInactiveInterval: -1, absoluteTimeout: -1 };
      await t.outage(async () => {
        await assert.rejects(t.write({ ...nothing, ...times, kind: 'create', id: t.idFor(id) }));
        await assert.rejects(t.write({ ...nothing, ...times, kind: 'update', id }));
        await assert.rejects(t.write({ ...nothing, kind: 'update', id, expected: { name: 'a', text: '2' } }));
        await assert.rejects(t.write({ kind: 'touch', id }));
        await assert.rejects(t.write({ kind: 'delete', id }));
      });
      assert.notEqual((await t.load(id)).maxInactiveInterval, -1);
    },

    'leave a session that is new to be stored afterwards': async (t) => {
      // A store that has not been used yet fails before it does anything.
      await t.stored();
      const session = t.repository.createSession();
      session.setAttribute('a', 1);
      await t.outage(() => assert.rejects(session.save(), SessionStoreError));
      await t.isOver(session.id);
      await t.saves(session);
      assert.deepEqual(await t.attributesOf(session.id), { a: 1 });
    },

    'leave everything that a save was to change as it was, and to be saved afterwards': async (t) => {
      const session = await t.stored({ a: 1, b: 1 });
      const { id } = session;
      session.setAttribute('a', 2);
      session.removeAttribute('b');
      session.maxInactiveInterval = 600;
      const newId = session.changeSessionId();
      await t.outage(() => assert.rejects(session.save(), SessionStoreError));
      assert.deepEqual(await t.attributesOf(id), { a: 1, b: 1 });
      await t.isOver(newId);
      await t.saves(session);
      await t.isOver(id);
      assert.deepEqual(await t.attributesOf(newId), { a: 2 });
      assert.equal((await t.load(newId)).maxInactiveInterval, 600);
    },

    'end no session that was to be ended, until it is ended afterwards': async (t) => {
      const session = await t.stored();
      session.invalidate();
      await t.outage(() => assert.rejects(session.save(), SessionStoreError));
      await t.load(session.id);
      await t.saves(session);
      await t.isOver(session.id);
    },
  },
};
