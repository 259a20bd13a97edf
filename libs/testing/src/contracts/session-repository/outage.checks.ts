import assert from 'node:assert/strict';
import { IndexedSessionRepository, PRINCIPAL_NAME_INDEX_NAME, SessionStoreError } from '@nest-session/core';
import type { CheckGroup } from './check.group.js';

export const OUTAGES: CheckGroup = {
  name: 'outages',
  needs: 'outages',
  checks: {
    'make every call of the repository fail, and never look like a missing session': async (t) => {
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
          const index = [PRINCIPAL_NAME_INDEX_NAME, 'ann'] as const;
          await assert.rejects(async () => {
            for await (const { id } of repository.listByIndex(...index)) assert.fail(id);
          }, SessionStoreError);
          await assert.rejects(repository.countByIndex(...index), SessionStoreError);
          await assert.rejects(repository.deleteByIndex(...index), SessionStoreError);
          await assert.rejects(repository.deleteIfListed(session.id, ...index), SessionStoreError);
        }
      });
      assert.equal((await t.load(session.id)).getAttribute('n'), 0);
    },

    'make every step of the store fail': async (t) => {
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

    'leave a new session that can be saved afterwards': async (t) => {
      // A write of a store that was never used must fail as well.
      await t.stored();
      const session = t.repository.createSession();
      session.setAttribute('a', 1);
      await t.outage(() => assert.rejects(session.save(), SessionStoreError));
      await t.isOver(session.id);
      await t.saves(session);
      assert.deepEqual(await t.attributesOf(session.id), { a: 1 });
    },

    'leave the session unchanged by a failed save, which can be repeated afterwards': async (t) => {
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

    'leave a session whose deletion failed alive until it is deleted afterwards': async (t) => {
      const session = await t.stored();
      session.invalidate();
      await t.outage(() => assert.rejects(session.save(), SessionStoreError));
      await t.load(session.id);
      await t.saves(session);
      await t.isOver(session.id);
    },
  },
};
