import assert from 'node:assert/strict';
import { generateSessionKey } from '@nest-session/core/internal';
import type { CheckGroup } from './check.group.js';
import { FORWARDING_TIME } from './contract.context.js';

export const DELETION: CheckGroup = {
  name: 'deletion',
  checks: {
    'ends the session for every node, and no other session': async (t) => {
      const [session, another] = [await t.stored(), await t.stored()];
      assert.equal(await t.repository.deleteById(session.id), true);
      await t.isOver(session.id);
      await t.load(another.id);
    },

    'returns whether it has ended a session': async (t) => {
      const { id } = await t.stored();
      const expired = await t.stored({ a: 1 }, (each) => (each.maxInactiveInterval = 60));
      await t.advance(60_001);
      assert.equal(await t.other.deleteById(id), true);
      for (const none of [id, expired.id, generateSessionKey().id, '', 'x', '*', '__proto__']) {
        assert.equal(await t.repository.deleteById(none), false, none);
      }
    },

    'follows invalidate(), and tells the request whether that request ended the session': async (t) => {
      const { id } = await t.stored();
      const [one, two] = [await t.load(id), await t.load(id, t.other)];
      one.invalidate();
      two.invalidate();
      assert.deepEqual([await one.save(), await two.save()], ['saved', 'gone']);
      assert.deepEqual([one.isDeleted, two.isDeleted], [true, false]);
      await t.isOver(id);
    },

    'ends a session that was rotated since, and tells the request that its own is gone': async (t) => {
      const session = await t.stored();
      const late = await t.load(session.id);
      await t.rotates(session);
      late.invalidate();
      assert.equal(await late.save(), 'gone');
      assert.equal(late.isDeleted, false);
      await t.isOver(session.id);
    },

    'accepts the old id for 60 s after a rotation, also over several rotations, and no longer': async (t) => {
      const [first, second] = [await t.stored(), await t.stored()];
      const [oldOfFirst, oldOfSecond] = [await t.rotates(first), await t.rotates(second)];
      await t.rotates(first);
      await t.advanceToJustBefore(FORWARDING_TIME);
      assert.equal(await t.repository.deleteById(oldOfFirst), true);
      await t.isOver(first.id);
      assert.equal(await t.repository.deleteById(oldOfFirst), false);
      await t.advancePast();
      assert.equal(await t.repository.deleteById(oldOfSecond), false);
      await t.load(second.id);
    },
  },
};
