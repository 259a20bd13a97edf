import assert from 'node:assert/strict';
import { type Session } from '@nest-session/core';
import { generateSessionKey, PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import type { CheckGroup } from './check.group.js';
import {
  type ContractContext,
  type ContractPlace,
  DAY,
  FORWARDING_TIME,
  INTERVAL,
  MINUTE,
  SECOND,
} from './contract.context.js';

/** The session of a request that presents these ids, none of which opens a session, and sets an attribute. */
function startedBy(t: ContractContext, presentedIds: readonly string[], place: ContractPlace = {}): Session {
  const session = t.create(place, presentedIds);
  session.setAttribute('late', true);
  return session;
}

function signedIn(t: ContractContext): Promise<Session> {
  return t.stored({ a: 1 }, (each) => each.signIn('ann'));
}

/** The same twice: with a session beside that of an id, and with one that is kept apart from it. */
function startedTwice(t: ContractContext, id: string, presentedIds: readonly string[] = [id]): Session[] {
  return [{ beside: id }, { apartFrom: [id] }].map((place) => startedBy(t, presentedIds, place));
}

export const CREATION: CheckGroup = {
  name: 'creation',
  checks: {
    'stores nothing before the first save': async (t) => {
      const session = t.repository.createSession();
      session.setAttribute('a', 1);
      await t.isOver(session.id);
      await t.saves(session);
      assert.deepEqual(await t.attributesOf(session.id), { a: 1 });
    },

    'stores every attribute and time, for every node': async (t) => {
      const session = await t.stored({ a: 1, b: ['x'] }, (each) => {
        each.principalName = 'ann';
        each.maxInactiveInterval = 600;
        each.absoluteTimeout = 7200;
      });
      const loaded = await t.load(session.id, t.other);
      assert.equal(loaded.id, session.id);
      assert.equal(loaded.isNew, false);
      assert.equal(loaded.getAttribute('a'), 1);
      assert.deepEqual(loaded.getAttribute('b'), ['x']);
      assert.equal(loaded.principalName, 'ann');
      assert.equal(loaded.maxInactiveInterval, 600);
      assert.equal(loaded.absoluteTimeout, 7200);
    },

    'gives a session the timeouts of the options': async (t) => {
      const { id } = await t.stored();
      const loaded = await t.load(id);
      assert.equal(loaded.maxInactiveInterval, INTERVAL / SECOND);
      assert.equal(loaded.absoluteTimeout, -1);
    },

    'stamps the creation time by the clock of the store and returns it': async (t) => {
      const first = await t.stored();
      await t.advance(DAY);
      const second = await t.stored({}, (each) => each.setAttribute('a', 1));
      t.isAbout(second.creationTime - first.creationTime, DAY);
      const loaded = await t.load(second.id);
      assert.equal(loaded.creationTime, second.creationTime);
      assert.equal(loaded.lastAccessedTime, second.creationTime);
      assert.equal(second.lastAccessedTime, second.creationTime);
    },

    'tells the time by the clock that stamps the creation': async (t) => {
      const { creationTime } = await t.stored();
      t.isAbout((await t.repository.now()) - creationTime, 0);
      await t.advance(DAY);
      t.isAbout((await t.repository.now()) - creationTime, DAY);
    },

    'draws another id when the first is taken, and leaves the session that has it unchanged': async (t) => {
      const first = await t.stored({ a: 'first' });
      t.drawAgain(first);
      const unlucky = t.repository.createSession();
      assert.equal(unlucky.id, first.id);
      unlucky.setAttribute('a', 'second');
      await t.saves(unlucky);
      assert.notEqual(unlucky.id, first.id);
      assert.deepEqual(await t.attributesOf(first.id), { a: 'first' });
      assert.deepEqual(await t.attributesOf(unlucky.id), { a: 'second' });
    },

    'refuses a late request that presents an id from just before a rotation, whatever else it presents': async (t) => {
      const session = await t.stored();
      const nobody = generateSessionKey().id;
      const first = await t.rotates(session);
      const second = await t.rotates(session);
      // In a partitioned store, some of many unknown ids belong to other partitions.
      const many = () => Array.from({ length: 8 }, () => generateSessionKey().id);
      const alone = [[first], [second], [nobody, first], [first, nobody]];
      const amongMany = Array.from({ length: 4 }, () => [...many(), first, ...many()]);
      for (const presentedIds of [...alone, ...amongMany]) {
        for (const late of startedTwice(t, session.id, presentedIds)) {
          await t.refuses(late);
          await t.isOver(late.id);
        }
      }
    },

    'accepts such a request where nobody is signed in since the rotation, and until somebody is': async (t) => {
      const [{ id: first }, { id: second }] = [await signedIn(t), await signedIn(t)];
      const [signedOut, cleared] = [await t.load(first), await t.load(second)];
      const ids = [first, second];
      signedOut.changeSessionId();
      signedOut.principalName = undefined;
      // As Passport signs a user out.
      cleared.principalName = undefined;
      await t.saves(cleared);
      cleared.startAnew();
      cleared.setAttribute('flash', 1);
      for (const session of [signedOut, cleared]) await t.saves(session);
      for (const id of ids) for (const late of startedTwice(t, id)) await t.saves(late);
      signedOut.signIn('bob');
      cleared.changeSessionId();
      for (const session of [signedOut, cleared]) await t.saves(session);
      for (const id of ids) for (const late of startedTwice(t, id)) await t.refuses(late);
    },

    'accepts a principal that is no string, and lists it in no index': async (t) => {
      const { id } = generateSessionKey();
      const times = { maxInactiveInterval: MINUTE / SECOND, absoluteTimeout: -1 };
      const attributes = new Map([[PRINCIPAL_ATTRIBUTE, '5']]);
      await t.write({ kind: 'create', id, presentedIds: [], ...times, attributes, indexes: new Map() });
      assert.deepEqual(await t.attributesOf(id), { [PRINCIPAL_ATTRIBUTE]: 5 });
    },

    'refuses such a late request also under an id that is taken': async (t) => {
      const session = await t.stored();
      const previousId = await t.rotates(session);
      const times = { maxInactiveInterval: MINUTE / SECOND, absoluteTimeout: -1 };
      const nothing = { attributes: new Map(), indexes: new Map() };
      const change = { kind: 'create', id: session.id, presentedIds: [previousId], ...times, ...nothing } as const;
      assert.deepEqual(await t.write(change), { outcome: 'gone' });
    },

    'refuses such a late request also after the session has ended, however it ended': async (t) => {
      const session = await t.stored();
      const previousId = await t.rotates(session);
      await t.repository.deleteById(previousId);
      for (const late of startedTwice(t, previousId)) await t.refuses(late);

      const short = await t.stored({ a: 1 }, (each) => (each.maxInactiveInterval = 20));
      const previousIdOfShort = await t.rotates(short);
      await t.advance(20 * SECOND + 1);
      await t.reportExpired();
      await t.isOver(short.id);
      for (const late of startedTwice(t, previousIdOfShort)) await t.refuses(late);
    },

    'refuses an id from which another session has just been rotated': async (t) => {
      const session = await t.stored();
      const id = await t.rotates(session);
      const times = { maxInactiveInterval: MINUTE / SECOND, absoluteTimeout: -1 };
      const nothing = { presentedIds: [], attributes: new Map(), indexes: new Map() };
      assert.deepEqual(await t.write({ kind: 'create', id, ...times, ...nothing }), { outcome: 'collision' });
      await t.isOver(id);
    },

    'refuses such an id for 60 s, and no longer': async (t) => {
      const previousId = await t.rotates(await t.stored());
      await t.advanceToJustBefore(FORWARDING_TIME);
      for (const late of startedTwice(t, previousId)) await t.refuses(late);
      await t.advancePast();
      for (const late of startedTwice(t, previousId)) await t.saves(late);
    },

    'accepts a client that presents an unknown id, or that of an ended session': async (t) => {
      const takes = async (presentedId: string) => {
        for (const session of startedTwice(t, presentedId)) {
          await t.saves(session);
          assert.notEqual(session.id, presentedId);
          assert.deepEqual(await t.attributesOf(session.id), { late: true });
        }
        await t.isOver(presentedId);
      };
      await takes(generateSessionKey().id);
      const deleted = await t.stored();
      await t.repository.deleteById(deleted.id);
      await takes(deleted.id);
      const expired = await t.stored();
      await t.expireAll();
      await takes(expired.id);
      await t.reportExpired();
      await takes(expired.id);
    },

    'stores nothing again when a creation is sent twice because its reply was lost': async (t) => {
      const session = await t.stored();
      const times = { maxInactiveInterval: MINUTE / SECOND, absoluteTimeout: -1 };
      const attributes = new Map([['a', '"again"']]);
      const change = {
        kind: 'create',
        id: session.id,
        presentedIds: [],
        ...times,
        attributes,
        indexes: new Map(),
      } as const;
      assert.deepEqual(await t.write(change), { outcome: 'collision' });
      assert.deepEqual(await t.attributesOf(session.id), { a: 1 });
      assert.equal((await t.load(session.id)).maxInactiveInterval, INTERVAL / SECOND);
    },
  },
};
