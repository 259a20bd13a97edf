import assert from 'node:assert/strict';
import { SessionGoneError } from '@nest-session/core';
import { eventually } from '../../wait/eventually.js';
import type { CheckGroup } from './check.group.js';
import { DAY, SECOND } from './contract.context.js';

export const REVOCATION: CheckGroup = {
  name: 'revocation',
  needs: 'revocations',
  checks: {
    'ends every session for every node, also one without a principal or an end': async (t) => {
      const [visitor, user] = [
        await t.stored(),
        await t.stored({ a: 1 }, (session) => (session.principalName = 'ann')),
      ];
      const endless = await t.stored({ a: 1 }, (session) => (session.maxInactiveInterval = -1));
      await t.load(user.id, t.other);
      await t.repository.endEverySession();
      for (const { id } of [visitor, user, endless]) {
        assert.equal(await t.repository.findById(id), null);
        await eventually(async () => assert.equal(await t.other.findById(id), null));
      }
      await t.reportExpired();
      for (const session of [visitor, user, endless]) {
        session.setAttribute('a', 2);
        assert.equal(await session.save(), 'gone');
      }
      await t.advance(DAY);
      await t.reportExpired();
      for (const { id } of [visitor, user, endless]) await t.isOver(id);
    },

    'keeps sessions that begin later': async (t) => {
      await t.stored();
      await t.repository.endEverySession();
      await t.advance(SECOND);
      const session = await t.stored({ n: 1 });
      await t.reportExpired();
      assert.equal((await t.load(session.id, t.other)).getAttribute('n'), 1);
      await t.rotates(session);
      await t.repository.endEverySession();
      await eventually(() => t.isOver(session.id));
    },

    'lets nobody sign in to a session that it ends, also before the store has ended it': async (t) => {
      const visitor = await t.stored({ role: 'admin' });
      const user = await t.stored({ role: 'admin' }, (session) => session.signIn('ann'));
      const requests = [await t.load(visitor.id, t.other), await t.load(user.id, t.other)];
      await t.repository.endEverySession();
      for (const session of requests) {
        session.signIn('eve');
        await assert.rejects(session.save(), SessionGoneError);
        await t.isOver(session.id);
      }
    },

    'is repeated without effect': async (t) => {
      const { id } = await t.stored();
      await t.repository.endEverySession();
      await t.reportExpired();
      await t.repository.endEverySession();
      await t.reportExpired();
      await t.isOver(id);
    },

    'can be made by several nodes at once': async (t) => {
      const ids: string[] = [];
      for (let i = 0; i < 20; i++) ids.push((await t.stored({ i })).id);
      await Promise.all([t.repository.endEverySession(), t.other.endEverySession()]);
      for (const id of ids) await t.isOver(id);
    },
  },
};
