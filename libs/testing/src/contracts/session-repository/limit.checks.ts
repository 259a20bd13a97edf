import assert from 'node:assert/strict';
import { PRINCIPAL_NAME_INDEX_NAME, type SessionDeletedEvent } from '@nest-session/core';
import { generateSessionKey, storePrimitivesOf, PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import type { CreateSession, SessionLimit, UpdateSession } from '@nest-session/core/store';
import { ROUNDS } from './at-once.js';
import type { CheckGroup } from './check.group.js';
import { INTERVAL, SECOND, type ContractContext } from './contract.context.js';

const AT_MOST = 3;
/** More than a store ends in one step. */
const MANY = 120;

function limitOf({ atMost = AT_MOST, principal = 'ann', refuse = false }: Limit): SessionLimit {
  return { principal, atMost, whenReached: refuse ? 'refuse' : 'end-oldest' };
}

interface Limit {
  readonly atMost?: number;
  readonly principal?: string;
  readonly refuse?: boolean;
}

const named = (principal: string) => ({
  attributes: new Map([[PRINCIPAL_ATTRIBUTE, JSON.stringify(principal)]]),
  indexes: new Map([[PRINCIPAL_NAME_INDEX_NAME, principal]]),
});

function creation(limit?: Limit, id = generateSessionKey().id): CreateSession {
  const { principal = 'ann' } = limit ?? {};
  const times = { maxInactiveInterval: INTERVAL / SECOND, absoluteTimeout: -1 };
  const change = { kind: 'create', id, presentedIds: [], ...times, signsIn: true, ...named(principal) } as const;
  return limit ? { ...change, limit: limitOf(limit) } : change;
}

/** Lets a principal sign in to a new session. Returns its id. */
async function signIn(t: ContractContext, limit?: Limit, repository = t.repository): Promise<string> {
  const change = creation(limit);
  const { outcome } = await storePrimitivesOf(repository).write(change);
  assert.equal(outcome, 'created');
  return change.id;
}

/** The same, to a session that is kept apart from others. */
async function signInApart(t: ContractContext, apartFrom: readonly string[], limit?: Limit): Promise<string> {
  const change = creation(limit, t.idAt({ apartFrom }));
  assert.equal((await t.write(change)).outcome, 'created');
  return change.id;
}

/** As many sign-ins, at different times; each to a session that is kept apart from the first one and the one before. */
async function signIns(t: ContractContext, number: number, limit?: Limit): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < number; i++) {
    ids.push(await signInApart(t, [...ids.slice(0, 1), ...ids.slice(-1)], limit));
    await t.advance(SECOND);
  }
  return ids;
}

/** A sign-in to a stored session, which gets a new id. */
function rotation(t: ContractContext, id: string, limit: Limit): UpdateSession {
  const times = { maxInactiveInterval: INTERVAL / SECOND, absoluteTimeout: -1 };
  const { principal = 'ann' } = limit;
  const change = { kind: 'update', id, newId: t.idFor(id), signIn: { butNot: [] }, ...times } as const;
  return { ...change, ...named(principal), limit: limitOf(limit) };
}

/** The ids of the live sessions of a principal. */
async function live(t: ContractContext, name = 'ann'): Promise<string[]> {
  const sessions = await t.indexed.findByPrincipalName(name);
  return sessions.map(({ id }) => id).toSorted();
}

export const LIMITS: CheckGroup = {
  name: 'a limit of sessions',
  needs: 'indexes',
  checks: {
    'ends the session whose sign-in is the longest ago, with its event': async (t) => {
      const [first, ...others] = await signIns(t, AT_MOST + 1, {});
      assert.deepEqual(await live(t), others.toSorted());
      await t.isOver(first!);
      const [, second, ...last] = [first, ...others];
      const again = rotation(t, second!, {});
      assert.equal((await t.write(again)).outcome, 'saved');
      await t.advance(SECOND);
      const fifth = await signInApart(t, [last[0]!], {});
      assert.deepEqual(await live(t), [last[1]!, again.newId!, fifth].toSorted());
    },

    'is not reached by sessions that are over': async (t) => {
      const [first, second, third] = await signIns(t, AT_MOST, {});
      await t.repository.deleteById(second!);
      const short = await t.load(third!);
      short.maxInactiveInterval = 60;
      await t.saves(short);
      await t.advance(100 * SECOND);
      const [fourth, fifth] = await signIns(t, 2, {});
      assert.deepEqual(await live(t), [first!, fourth!, fifth!].toSorted());
    },

    'refuses one more, and changes nothing': async (t) => {
      const ids = await signIns(t, AT_MOST, { refuse: true });
      const change = creation({ refuse: true });
      assert.deepEqual(await t.write(change), { outcome: 'refused' });
      const { id } = await t.stored({ a: 1 });
      const attributes = new Map([...named('ann').attributes, ['a', '2']]);
      assert.deepEqual(await t.write({ ...rotation(t, id, { refuse: true }), attributes }), { outcome: 'refused' });
      assert.deepEqual(await t.attributesOf(id), { a: 1 });
      assert.deepEqual(await live(t), ids.toSorted());
      await t.isOver(change.id);
      await t.repository.deleteById(ids[0]!);
      assert.equal((await t.write(change)).outcome, 'created');
      assert.deepEqual(await live(t), [...ids.slice(1), change.id].toSorted());
    },

    'counts a session that signs in again, is rotated or gets its principal again once': async (t) => {
      const ids = await signIns(t, AT_MOST, { refuse: true });
      const again = rotation(t, ids[0]!, { refuse: true });
      assert.equal((await t.write(again)).outcome, 'saved');
      const change = { kind: 'update', id: ids[1]!, limit: limitOf({ refuse: true }) } as const;
      assert.equal((await t.write({ ...change, ...named('ann') })).outcome, 'saved');
      const newId = t.idFor(ids[2]!);
      const none = { attributes: new Map(), indexes: new Map() };
      assert.equal((await t.write({ ...change, id: ids[2]!, newId, ...none })).outcome, 'saved');
      assert.deepEqual(await live(t), [again.newId!, ids[1]!, newId].toSorted());
      assert.deepEqual(await t.write(creation({ refuse: true })), { outcome: 'refused' });
    },

    'ends all that are too many, once it is lower': async (t) => {
      for (let i = 0; i < MANY; i++) await signIn(t);
      await t.advance(SECOND);
      const last = await signIns(t, 2);
      const newest = await signIn(t, {});
      assert.deepEqual(await live(t), [...last, newest].toSorted());
      assert.equal(await t.indexed.countByIndex(PRINCIPAL_NAME_INDEX_NAME, 'ann'), AT_MOST);
    },

    'is not enforced by changes that list nobody': async (t) => {
      const ids = await signIns(t, AT_MOST + 1);
      const session = await t.load(ids[0]!);
      session.setAttribute('a', 2);
      await t.saves(session);
      await t.rotates(session);
      await signIn(t, { principal: 'bob', atMost: 1 });
      assert.deepEqual(await live(t), [session.id, ...ids.slice(1)].toSorted());
    },

    'lets a change that fails end nobody': async (t) => {
      const ids = await signIns(t, AT_MOST, {});
      const { id } = await t.stored();
      await t.repository.deleteById(id);
      assert.deepEqual(await t.write(rotation(t, id, {})), { outcome: 'gone' });
      const visitor = await t.stored();
      const ending = { ...rotation(t, visitor.id, {}), maxInactiveInterval: 0 };
      assert.equal((await t.write(ending)).outcome, 'saved');
      assert.deepEqual(await live(t), ids.toSorted());
      await t.isOver(visitor.id);
    },

    'holds for each principal on its own, and for who moves from one to another': async (t) => {
      const [anns, bobs] = [await signIns(t, AT_MOST, {}), await signIns(t, AT_MOST, { principal: 'bob' })];
      const moved = rotation(t, anns[2]!, { principal: 'bob' });
      assert.equal((await t.write(moved)).outcome, 'saved');
      assert.deepEqual(await live(t), anns.slice(0, 2).toSorted());
      assert.deepEqual(await live(t, 'bob'), [...bobs.slice(1), moved.newId!].toSorted());
      const third = await signIn(t, {});
      assert.deepEqual(await live(t), [...anns.slice(0, 2), third].toSorted());
    },

    'holds for sign-ins at once, of which each ends one session': async (t) => {
      for (let round = 0; round < ROUNDS; round++) {
        const nodes = Array.from({ length: 3 * AT_MOST }, (_, i) => (i % 2 === 0 ? t.repository : t.other));
        const signing = Promise.all(nodes.map((node) => signIn(t, {}, node)));
        let isOver = false;
        const ids = signing.finally(() => (isOver = true));
        ids.catch(() => undefined);
        while (!isOver) {
          assert.ok((await live(t)).length <= AT_MOST);
          // A store in memory answers before anything else can happen.
          await new Promise((resolve) => setImmediate(resolve));
        }
        await ids;
        assert.equal((await live(t)).length, AT_MOST);
      }
    },

    'lets as many through as there is room for, when more sign in at once': async (t) => {
      for (let round = 0; round < ROUNDS; round++) {
        const principal = `user ${round}`;
        const nodes = Array.from({ length: 3 * AT_MOST }, (_, i) => (i % 2 === 0 ? t.repository : t.other));
        const outcomes = await Promise.all(
          nodes.map(async (node) => {
            const { outcome } = await storePrimitivesOf(node).write(creation({ principal, refuse: true }));
            return outcome;
          }),
        );
        assert.equal(outcomes.filter((outcome) => outcome === 'created').length, AT_MOST);
        assert.equal(outcomes.filter((outcome) => outcome === 'refused').length, 2 * AT_MOST);
        assert.equal((await live(t, principal)).length, AT_MOST);
      }
    },
  },
};

export const LIMIT_EVENTS: CheckGroup = {
  name: 'the events of a limit of sessions',
  needs: 'events',
  checks: {
    'are one deleted event for each session that was ended': async (t) => {
      const ids = await signIns(t, 2 * AT_MOST, {});
      for (const [i, id] of ids.entries()) {
        const end = i < AT_MOST ? ['deleted'] : [];
        assert.deepEqual(await t.eventTypes(id), ['created', 'signed-in', ...end]);
      }
      const ended = (await t.events(ids[0]!)).at(-1);
      assert.equal((ended as SessionDeletedEvent).reason, 'limit');
    },

    'are one expired event for a session that took the place of the only other one of its minute': async (t) => {
      const [, last] = [await signIn(t, { atMost: 1 }), await signIn(t, { atMost: 1 })];
      await t.expireAll();
      await t.reportExpired();
      assert.deepEqual(await t.eventTypes(last), ['created', 'signed-in', 'expired']);
    },
  },
};
