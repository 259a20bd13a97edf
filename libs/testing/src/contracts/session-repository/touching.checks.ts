import assert from 'node:assert/strict';
import type { CheckGroup } from './check.group.js';
import { INTERVAL, MINUTE } from './contract.context.js';

export const TOUCHING: CheckGroup = {
  name: 'touch',
  checks: {
    'renews a session and changes nothing else': async (t) => {
      const session = await t.stored({ a: 1 }, (each) => (each.principalName = 'ann'));
      const loaded = await t.load(session.id, t.other);
      await t.advance(20 * MINUTE);
      loaded.setAttribute('a', 'not saved');
      assert.equal(await t.other.touch(loaded), 'touched');
      const touched = await t.load(session.id);
      t.isAbout(touched.lastAccessedTime - session.creationTime, 20 * MINUTE);
      assert.equal(touched.creationTime, session.creationTime);
      assert.deepEqual([touched.getAttribute('a'), touched.principalName], [1, 'ann']);
      await t.advanceToJustBefore(INTERVAL);
      await t.load(session.id);
      await t.advancePast();
      await t.isOver(session.id);
    },

    'renews a session under its stored id while a rotation is not saved yet': async (t) => {
      const session = await t.stored();
      const { id } = session;
      await t.advance(20 * MINUTE);
      session.changeSessionId();
      assert.equal(await t.repository.touch(session), 'touched');
      await t.isOver(session.id);
      await t.advance(20 * MINUTE);
      await t.load(id);
      await t.saves(session);
      await t.load(session.id);
    },

    'is gone for deleted, expired and unsaved sessions': async (t) => {
      const deleted = await t.stored();
      await t.repository.deleteById(deleted.id);
      const expired = await t.stored();
      await t.expireAll();
      const unsaved = t.repository.createSession();
      for (const session of [deleted, expired, unsaved]) {
        assert.equal(await t.repository.touch(session), 'gone');
        await t.isOver(session.id);
      }
    },
  },
};
