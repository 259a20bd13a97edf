import assert from 'node:assert/strict';
import type { Session } from '@nest-session/core';
import type { CheckGroup } from './check.group.js';
import { INTERVAL, MINUTE, type ContractContext } from './contract.context.js';

/** Attempts of late requests, each with a session that it loaded before the end. */
const LATE: Readonly<Record<string, (session: Session, t: ContractContext) => Promise<unknown>>> = {
  'an attribute': (session) => {
    session.setAttribute('late', true);
    return session.save();
  },
  'a removal': (session) => {
    session.removeAttribute('a');
    return session.save();
  },
  'a principal': (session) => {
    session.principalName = 'mallory';
    return session.save();
  },
  'another interval': (session) => {
    session.maxInactiveInterval = -1;
    return session.save();
  },
  'another absolute end': (session) => {
    session.absoluteTimeout = 2 ** 31 - 1;
    return session.save();
  },
  'another id': (session) => {
    session.changeSessionId();
    return session.save();
  },
  'an end': (session) => {
    session.invalidate();
    return session.save();
  },
  'an attribute update': async (session) => (await session.updateAttribute('a', () => 2)) ?? 'gone',
  'a touch': (session, t) => t.repository.touch(session),
};

/** Asserts that requests that loaded a session before its end cannot restore it. */
async function staysOver(t: ContractContext, end: (id: string) => Promise<unknown>): Promise<void> {
  const { id } = await t.stored();
  const late = new Map<string, Session>();
  for (const what of Object.keys(LATE)) late.set(what, await t.load(id));
  await end(id);
  for (const [what, session] of late) {
    assert.equal(await LATE[what]!(session, t), 'gone', `An ended session accepts ${what}`);
    await t.isOver(id);
    await t.isOver(session.id);
  }
}

export const SAVING: CheckGroup = {
  name: 'saving',
  checks: {
    'writes only the changes, so that two concurrent requests lose none of them': async (t) => {
      const { id } = await t.stored({ a: 0, b: 0, removed: 0, untouched: 0 });
      const [one, two] = [await t.load(id), await t.load(id, t.other)];
      for (const session of [one, two]) session.attributeNames.forEach((name) => session.getAttribute(name));
      one.setAttribute('a', 1);
      one.removeAttribute('removed');
      one.setAttribute('one', true);
      two.setAttribute('b', 2);
      two.setAttribute('two', true);
      await t.saves(one);
      await t.saves(two);
      assert.deepEqual(await t.attributesOf(id), { a: 1, b: 2, one: true, two: true, untouched: 0 });
    },

    'keeps the later of two values of one attribute': async (t) => {
      const { id } = await t.stored({ a: 0 });
      const [one, two] = [await t.load(id), await t.load(id, t.other)];
      one.setAttribute('a', 1);
      two.setAttribute('a', 2);
      await t.saves(two);
      await t.saves(one);
      assert.deepEqual(await t.attributesOf(id), { a: 1 });
    },

    'removes an attribute that another request has already removed': async (t) => {
      const { id } = await t.stored({ a: 1, b: 1 });
      const [one, two] = [await t.load(id), await t.load(id, t.other)];
      for (const session of [one, two]) {
        session.removeAttribute('a');
        await t.saves(session);
      }
      assert.deepEqual(await t.attributesOf(id), { b: 1 });
    },

    'keeps a session whose last attribute is removed': async (t) => {
      const session = await t.stored({ a: 1 });
      session.removeAttribute('a');
      await t.saves(session);
      assert.deepEqual(await t.attributesOf(session.id), {});
      assert.equal(await t.repository.touch(session), 'touched');
      await t.rotates(session);
      assert.deepEqual(await t.attributesOf(session.id), {});
    },

    'renews the session': async (t) => {
      const { id, creationTime } = await t.stored();
      await t.advance(20 * MINUTE);
      const session = await t.load(id);
      session.setAttribute('a', 2);
      await t.saves(session);
      t.isAbout((await t.load(id)).lastAccessedTime - creationTime, 20 * MINUTE);
      await t.advanceToJustBefore(INTERVAL);
      await t.load(id);
      await t.advancePast();
      await t.isOver(id);
    },

    'renews a session when only its timeouts change': async (t) => {
      const session = await t.stored();
      await t.advance(20 * MINUTE);
      session.maxInactiveInterval = 25 * 60;
      await t.saves(session);
      t.isAbout((await t.load(session.id)).lastAccessedTime - session.creationTime, 20 * MINUTE);
      await t.advance(20 * MINUTE);
      session.absoluteTimeout = 120 * 60;
      await t.saves(session);
      t.isAbout((await t.load(session.id)).lastAccessedTime - session.creationTime, 40 * MINUTE);
    },

    'does not renew a session that the request keeps idle': async (t) => {
      const { id, creationTime } = await t.stored();
      await t.advance(20 * MINUTE);
      const session = await t.load(id);
      session.keepIdle();
      session.setAttribute('a', 2);
      await t.saves(session);
      assert.deepEqual(await t.attributesOf(id), { a: 2 });
      assert.equal((await t.load(id)).lastAccessedTime, creationTime);
      await t.advance(10 * MINUTE + 1);
      await t.isOver(id);
    },

    'never sets the time of the last access back when the clock steps back': async (t) => {
      const { id } = await t.stored();
      await t.advance(20 * MINUTE);
      const session = await t.load(id);
      session.setAttribute('a', 2);
      await t.saves(session);
      const { lastAccessedTime } = await t.load(id);
      await t.advance(-10 * MINUTE);
      session.setAttribute('a', 3);
      await t.saves(session);
      await t.repository.touch(session);
      assert.equal((await t.load(id)).lastAccessedTime, lastAccessedTime);
      await t.advance(20 * MINUTE);
      await t.load(id);
    },

    'counts from now when the clock has stepped back behind the last access': async (t) => {
      const [touched, saved, idle] = [await t.stored(), await t.stored(), await t.stored()];
      await t.advance(20 * MINUTE);
      for (const session of [touched, saved, idle]) await t.repository.touch(session);
      await t.advance(-10 * MINUTE);
      await t.repository.touch(touched);
      saved.setAttribute('a', 2);
      idle.keepIdle();
      idle.maxInactiveInterval = 20 * 60;
      for (const session of [saved, idle]) await t.saves(session);
      await t.advance(20 * MINUTE + 1);
      await t.isOver(idle.id);
      for (const { id } of [touched, saved]) await t.load(id);
      await t.advance(10 * MINUTE);
      for (const { id } of [touched, saved]) await t.isOver(id);
    },

    'writes attributes, timeouts and a new id in one step': async (t) => {
      const session = await t.stored({ a: 1, b: 1 });
      session.setAttribute('a', 2);
      session.removeAttribute('b');
      session.principalName = 'ann';
      session.maxInactiveInterval = 60;
      session.absoluteTimeout = 3600;
      const previousId = await t.rotates(session);
      const loaded = await t.load(session.id);
      assert.deepEqual([loaded.getAttribute('a'), loaded.getAttribute('b')], [2, undefined]);
      assert.equal(loaded.principalName, 'ann');
      assert.deepEqual([loaded.maxInactiveInterval, loaded.absoluteTimeout], [60, 3600]);
      await t.isOver(previousId);
    },

    'does not restore a deleted session': (t) => staysOver(t, (id) => t.repository.deleteById(id)),

    'does not restore an expired session before the expiry is noticed': (t) => staysOver(t, () => t.expireAll()),

    'does not restore an expired session after the expiry is noticed': (t) =>
      staysOver(t, async () => {
        await t.expireAll();
        await t.reportExpired();
      }),
  },
};
