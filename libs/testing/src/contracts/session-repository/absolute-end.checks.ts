import assert from 'node:assert/strict';
import type { TrackedSession } from '@nest-session/core/internal';
import type { CheckGroup, Checks } from './check.group.js';
import { DAY, INTERVAL, MINUTE, type ContractContext } from './contract.context.js';

const HOUR = 60 * MINUTE;

/** The uses of a session, none of which postpones its absolute timeout. */
const USES: Readonly<Record<string, (session: TrackedSession, t: ContractContext) => Promise<unknown>>> = {
  'a touch': (session, t) => t.repository.touch(session),
  'a save': (session, t) => {
    session.setAttribute('at', `${Math.random()}`);
    return t.saves(session);
  },
  'a rotation': (session, t) => t.rotates(session),
  'a longer interval': (session, t) => {
    session.maxInactiveInterval += DAY / 1000;
    return t.saves(session);
  },
  'no interval at all': (session, t) => {
    session.maxInactiveInterval = -1;
    session.setAttribute('at', `${Math.random()}`);
    return t.saves(session);
  },
  'an attribute update': (session) => session.updateAttribute<number>('n', (n = 0) => n + 1),
};

const passedByNone: Checks = Object.fromEntries(
  Object.entries(USES).map(([what, use]) => [
    `is not postponed by ${what}`,
    async (t) => {
      const session = await t.stored({ a: 1 }, (each) => (each.absoluteTimeout = 60 * 60));
      for (let minutes = 10; minutes < 60; minutes += 10) {
        await t.advance(10 * MINUTE);
        await use(session, t);
        assert.equal((await t.load(session.id)).absoluteTimeout, 60 * 60);
      }
      await t.advance(10 * MINUTE + 1);
      await t.isOver(session.id);
      assert.equal(await t.repository.touch(session), 'gone');
    },
  ]),
);

export const ABSOLUTE_END: CheckGroup = {
  name: 'absolute timeout',
  checks: {
    'ends a session exactly that long after its creation': async (t) => {
      const session = await t.stored({ a: 1 }, (each) => {
        each.absoluteTimeout = 60 * 60;
        each.maxInactiveInterval = -1;
      });
      await t.advanceToJustBefore(HOUR);
      assert.equal(await t.repository.touch(await t.load(session.id)), 'touched');
      await t.advancePast();
      await t.isOver(session.id);
    },

    'can be set for one session alone': async (t) => {
      const [limited, another] = [await t.stored(), await t.stored()];
      limited.absoluteTimeout = 10 * 60;
      await t.saves(limited);
      await t.advance(10 * MINUTE + 1);
      await t.isOver(limited.id);
      await t.load(another.id);
    },

    ...passedByNone,

    'takes effect together with a new idle timeout of the same save': async (t) => {
      const [limited, idle] = [await t.stored(), await t.stored()];
      limited.maxInactiveInterval = 120 * 60;
      limited.absoluteTimeout = 60 * 60;
      idle.maxInactiveInterval = 10 * 60;
      idle.absoluteTimeout = 60 * 60;
      for (const session of [limited, idle]) await t.saves(session);
      await t.advance(10 * MINUTE + 1);
      await t.isOver(idle.id);
      await t.advance(40 * MINUTE);
      await t.load(limited.id);
      await t.advance(10 * MINUTE);
      await t.isOver(limited.id);
    },

    'leaves the idle timeout in force': async (t) => {
      const { id } = await t.stored({ a: 1 }, (each) => (each.absoluteTimeout = 60 * 60));
      await t.advance(30 * MINUTE + 1);
      await t.isOver(id);
    },

    'counts from the creation when it is set later, also without an access': async (t) => {
      const [used, idle] = [await t.stored(), await t.stored()];
      await t.advance(20 * MINUTE);
      idle.keepIdle();
      for (const session of [used, idle]) {
        session.absoluteTimeout = 25 * 60;
        await t.saves(session);
        assert.equal((await t.load(session.id)).absoluteTimeout, 25 * 60);
      }
      await t.advance(5 * MINUTE + 1);
      await t.isOver(used.id);
      await t.isOver(idle.id);
    },

    'ends the session at once when it has already passed': async (t) => {
      const session = await t.stored();
      await t.advance(20 * MINUTE);
      session.absoluteTimeout = 10 * 60;
      await t.saves(session);
      await t.isOver(session.id);
      assert.equal(await t.repository.touch(session), 'gone');
    },

    'can be extended and removed': async (t) => {
      const [later, never] = [await t.stored(), await t.stored()];
      for (const session of [later, never]) {
        session.maxInactiveInterval = -1;
        session.absoluteTimeout = 10 * 60;
        await t.saves(session);
      }
      later.absoluteTimeout = 20 * 60;
      never.absoluteTimeout = -1;
      for (const session of [later, never]) await t.saves(session);
      await t.advance(15 * MINUTE);
      await t.load(later.id);
      await t.advance(5 * MINUTE + 1);
      await t.isOver(later.id);
      await t.advance(400 * DAY);
      assert.equal((await t.load(never.id)).absoluteTimeout, -1);
    },

    'leaves the idle timeout in force when it is removed': async (t) => {
      const session = await t.stored({ a: 1 }, (each) => (each.absoluteTimeout = 10 * 60));
      session.absoluteTimeout = -1;
      await t.saves(session);
      await t.advanceToJustBefore(INTERVAL);
      await t.load(session.id);
      await t.advancePast();
      await t.isOver(session.id);
    },
  },
};
