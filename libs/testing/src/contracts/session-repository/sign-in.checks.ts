import assert from 'node:assert/strict';
import { type Session } from '@nest-session/core';
import { PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import type { UpdateSession } from '@nest-session/core/store';
import type { CheckGroup } from './check.group.js';
import { INTERVAL, MINUTE, SECOND, type ContractContext } from './contract.context.js';

const VISITORS = 'nest-session.visitor.token';

/** What a sign-in keeps by default, where the option `visitorAttributes` is `['secret']`. */
const BY_DEFAULT = { butNot: ['secret'] };

function signInOf(id: string, newId: string): UpdateSession {
  const times = { maxInactiveInterval: INTERVAL / SECOND, absoluteTimeout: -1 };
  return { kind: 'update', id, newId, signIn: BY_DEFAULT, ...times, attributes: new Map(), indexes: new Map() };
}

async function signsIn(t: ContractContext, session: Session, keep?: string[]): Promise<void> {
  session.signIn('ann', { keep });
  await t.saves(session);
}

export const SIGN_IN: CheckGroup = {
  name: 'a sign-in',
  checks: {
    'of a new session stores the principal and the time, by the clock of the store': async (t) => {
      const anonymous = await t.stored();
      const session = await t.stored({ a: 1 }, (each) => each.signIn('ann'));
      t.isAbout(session.authenticatedAt! - anonymous.creationTime, 0);
      const loaded = await t.load(session.id, t.other);
      assert.deepEqual([loaded.principalName, loaded.getAttribute('a')], ['ann', 1]);
      assert.deepEqual([loaded.authenticatedAt, session.authenticatedAt], [loaded.creationTime, loaded.creationTime]);
      assert.equal((await t.load(anonymous.id)).authenticatedAt, undefined);
    },

    'of a stored session changes its id, and returns the time': async (t) => {
      const session = await t.stored({ a: 1, b: ['x'] });
      const { id } = session;
      await t.advance(15 * MINUTE);
      await signsIn(t, session);
      t.isAbout(session.authenticatedAt! - session.creationTime, 15 * MINUTE);
      await t.isOver(id);
      const loaded = await t.load(session.id, t.other);
      assert.deepEqual([loaded.principalName, loaded.authenticatedAt], ['ann', session.authenticatedAt]);
      assert.deepEqual([loaded.getAttribute('a'), loaded.getAttribute('b')], [1, ['x']]);
      assert.equal(loaded.creationTime, session.creationTime);
    },

    'again sets the time again': async (t) => {
      const session = await t.stored({ a: 1 }, (each) => each.signIn('ann'));
      await t.advance(15 * MINUTE);
      await signsIn(t, session);
      const { creationTime, authenticatedAt } = await t.load(session.id);
      t.isAbout(authenticatedAt! - creationTime, 15 * MINUTE);
    },

    'removes what is bound to the visitor, also what it does not know of, unless it sets that': async (t) => {
      const { id } = await t.stored({ a: 1, secret: 1, [VISITORS]: 1 });
      const late = await t.load(id, t.other);
      late.setAttribute(`${VISITORS}2`, 1);
      await t.saves(late);
      const newId = t.idFor(id);
      const change = { ...signInOf(id, newId), attributes: new Map([[VISITORS, '2']]) };
      const reply = await t.write(change);
      assert.ok(reply.outcome === 'saved' && reply.authenticatedAt);
      assert.deepEqual(await t.attributesOf(newId), { a: 1, [VISITORS]: 2 });
    },

    'keeps exactly the attributes that it is told to': async (t) => {
      const session = await t.stored({ a: 1, b: 1, c: 1, [VISITORS]: 1 });
      session.setAttribute('c', 2);
      session.signIn('ann', { keep: ['a', VISITORS] });
      session.setAttribute('d', 3);
      await t.saves(session);
      const expected = { a: 1, d: 3, [VISITORS]: 1, [PRINCIPAL_ATTRIBUTE]: 'ann' };
      assert.deepEqual(await t.attributesOf(session.id), expected);
    },

    'leaves out of late saves what it has not kept, and saves the rest': async (t) => {
      const { id } = await t.stored({ a: 1, secret: 1, [VISITORS]: 1 });
      const newId = t.idFor(id);
      await t.write(signInOf(id, newId));
      const late = (attributes: [string, string | null][], expected?: UpdateSession['expected']) =>
        t.write({ kind: 'update', id, attributes: new Map(attributes), indexes: new Map(), expected });
      const mixed = late([
        ['a', '2'],
        ['secret', '"planted"'],
        ['b', '2'],
        [VISITORS, '"planted"'],
      ]);
      assert.deepEqual(await mixed, { outcome: 'forwarded' });
      assert.deepEqual(await t.attributesOf(newId), { a: 2, b: 2 });
      const session = await t.load(newId);
      session.setAttribute(VISITORS, 'fresh');
      await t.saves(session);
      const removal = await late([
        [VISITORS, null],
        ['b', null],
      ]);
      assert.deepEqual(removal, { outcome: 'forwarded' });
      assert.deepEqual(await late([[VISITORS, '1']], { name: VISITORS, text: '"fresh"' }), { outcome: 'forwarded' });
      assert.deepEqual(await late([[VISITORS, '1']], { name: VISITORS, text: undefined }), { outcome: 'forwarded' });
      assert.deepEqual(await t.attributesOf(newId), { a: 2, [VISITORS]: 'fresh' });
    },

    'stays when a late save of a request that knew of nobody signs nobody in': async (t) => {
      const { id } = await t.stored({ a: 1 });
      const newId = t.idFor(id);
      await t.write(signInOf(id, newId));
      const { authenticatedAt } = await t.recordOf(newId);
      const late = {
        kind: 'update',
        id,
        signsOut: true,
        attributes: new Map([['a', '2']]),
        indexes: new Map(),
      } as const;
      assert.deepEqual(await t.write(late), { outcome: 'forwarded' });
      assert.ok(authenticatedAt !== undefined);
      assert.equal((await t.recordOf(newId)).authenticatedAt, authenticatedAt);
      assert.deepEqual(await t.attributesOf(newId), { a: 2 });
    },

    'of the same principal that keeps some attributes lets late saves change only these': async (t) => {
      const session = await t.stored({ a: 1, b: 1 }, (each) => each.signIn('ann'));
      const [late, updating] = [await t.load(session.id), await t.load(session.id)];
      await signsIn(t, session, ['a']);
      for (const name of ['a', 'b', 'c']) late.setAttribute(name, 2);
      await t.saves(late);
      assert.equal(await updating.updateAttribute<number>('d', () => 2), 2);
      assert.deepEqual(await t.attributesOf(session.id), { a: 2, [PRINCIPAL_ATTRIBUTE]: 'ann' });
    },

    'of the same principal leaves its rule in force across later ones': async (t) => {
      const session = await t.stored({ a: 1, b: 1 }, (each) => each.signIn('ann'));
      const late = await t.load(session.id);
      await t.rotates(session);
      await signsIn(t, session, ['b']);
      await signsIn(t, session);
      await t.rotates(session);
      for (const name of ['a', 'b', VISITORS]) late.setAttribute(name, 2);
      await t.saves(late);
      assert.deepEqual(await t.attributesOf(session.id), { b: 2, [PRINCIPAL_ATTRIBUTE]: 'ann' });
    },

    'sets both timeouts to those of the options, whatever other requests made of them': async (t) => {
      const session = await t.stored({ a: 1 }, (each) => {
        each.maxInactiveInterval = -1;
        each.absoluteTimeout = 7200;
      });
      const other = await t.load(session.id, t.other);
      other.maxInactiveInterval = 90_000;
      await t.saves(other);
      await signsIn(t, session);
      const loaded = await t.load(session.id);
      assert.deepEqual([loaded.maxInactiveInterval, loaded.absoluteTimeout], [INTERVAL / SECOND, -1]);
      await t.expireAll();
      await t.isOver(session.id);
    },

    'lets the absolute timeout count from it': async (t) => {
      const session = await t.stored({ a: 1 }, (each) => (each.absoluteTimeout = 20 * 60));
      await t.advance(15 * MINUTE);
      session.signIn('ann');
      session.absoluteTimeout = 20 * 60;
      await t.saves(session);
      await t.advance(15 * MINUTE);
      const loaded = await t.load(session.id);
      assert.equal(loaded.absoluteTimeout, 20 * 60);
      loaded.absoluteTimeout = 25 * 60;
      await t.saves(loaded);
      await t.advance(5 * MINUTE + 1);
      assert.equal((await t.load(session.id)).absoluteTimeout, 25 * 60);
      await t.advance(5 * MINUTE);
      await t.isOver(session.id);
    },

    'is forgotten with its principal, and the session keeps its end': async (t) => {
      const session = await t.stored({ a: 1 }, (each) => (each.absoluteTimeout = 60 * 60));
      await t.advance(15 * MINUTE);
      session.signIn('ann');
      session.absoluteTimeout = 20 * 60;
      await t.saves(session);
      session.principalName = undefined;
      await t.saves(session);
      const loaded = await t.load(session.id);
      assert.deepEqual([loaded.principalName, loaded.authenticatedAt], [undefined, undefined]);
      await t.advanceToJustBefore(20 * MINUTE);
      await t.load(session.id);
      await t.advancePast();
      await t.isOver(session.id);
    },

    'is not touched when a job renames the user': async (t) => {
      const session = await t.stored({ a: 1 }, (each) => each.signIn('ann'));
      const renamed = await t.load(session.id, t.other);
      renamed.principalName = 'anna';
      await t.saves(renamed);
      const loaded = await t.load(session.id);
      assert.deepEqual([loaded.principalName, loaded.authenticatedAt], ['anna', session.authenticatedAt]);
    },

    'happens once when it is sent twice because its reply was lost': async (t) => {
      const { id } = await t.stored();
      const newId = t.idFor(id);
      const change = signInOf(id, newId);
      const reply = await t.write(change);
      const session = await t.load(newId);
      session.setAttribute('a', 2);
      await t.saves(session);
      assert.deepEqual(await t.write(change), reply);
      assert.deepEqual(await t.attributesOf(newId), { a: 2 });
      assert.equal((await t.load(newId)).authenticatedAt, session.authenticatedAt);
    },

    'by a visitor who lost against another request begins a session of its own, with what it keeps': async (t) => {
      for (const rotate of [(each: Session) => each.changeSessionId(), (each: Session) => each.signIn('ann')]) {
        const session = await t.stored({ a: 1, removed: 1, [VISITORS]: 1 });
        const late = await t.load(session.id, t.other);
        late.removeAttribute('removed');
        rotate(session);
        await t.saves(session);
        const before = await t.recordOf(session.id);
        late.signIn('bob');
        late.setAttribute('b', 2);
        await t.saves(late);
        assert.deepEqual(await t.attributesOf(late.id), { a: 1, b: 2, [PRINCIPAL_ATTRIBUTE]: 'bob' });
        const { creationTime, authenticatedAt } = await t.load(late.id, t.other);
        assert.deepEqual([late.authenticatedAt, authenticatedAt], [creationTime, creationTime]);
        await t.isAsBefore(before);
      }
    },

    'by a visitor whose earlier save has found out that it lost begins such a session, too': async (t) => {
      const session = await t.stored({ n: 1 });
      const [updating, saving] = [await t.load(session.id), await t.load(session.id, t.other)];
      await signsIn(t, session);
      assert.equal(await updating.updateAttribute<number>('n', (n = 0) => n + 1), undefined);
      saving.setAttribute('n', 2);
      assert.equal(await saving.save(), 'gone');
      for (const late of [updating, saving]) {
        assert.equal(late.isGone, true);
        await signsIn(t, late);
        assert.equal((await t.load(late.id)).principalName, 'ann');
      }
      assert.deepEqual(await t.attributesOf(session.id), { n: 1, [PRINCIPAL_ATTRIBUTE]: 'ann' });
    },

    'of a client whose token was just replaced creates a session': async (t) => {
      const session = await t.stored();
      const previousId = await t.rotates(session);
      const late = t.repository.createSession([previousId]);
      late.signIn('ann');
      await t.saves(late);
      assert.equal((await t.load(late.id)).principalName, 'ann');
      await t.load(session.id);
    },

    'by a user who lost against another request does nothing': async (t) => {
      for (const name of ['ann', 'bob']) {
        const session = await t.stored({ a: 1 }, (each) => each.signIn('ann'));
        const late = await t.load(session.id);
        session.signIn(name);
        await t.saves(session);
        late.signIn('ann');
        await t.refuses(late);
        await t.isOver(late.id);
        assert.equal((await t.load(session.id)).principalName, name);
      }
    },

    'of another principal keeps nothing, unless it is told what': async (t) => {
      const session = await t.stored({ a: 1, b: 1 }, (each) => each.signIn('ann'));
      await signsIn(t, session);
      assert.deepEqual(await t.attributesOf(session.id), { a: 1, b: 1, [PRINCIPAL_ATTRIBUTE]: 'ann' });
      session.signIn('bob', { keep: ['a'] });
      await t.saves(session);
      assert.deepEqual(await t.attributesOf(session.id), { a: 1, [PRINCIPAL_ATTRIBUTE]: 'bob' });
      const [other, removed] = [await t.load(session.id, t.other), await t.load(session.id)];
      removed.setAttribute('late', 1);
      await t.saves(removed);
      other.principalName = undefined;
      other.signIn('carl');
      await t.saves(other);
      assert.deepEqual(await t.attributesOf(other.id), { [PRINCIPAL_ATTRIBUTE]: 'carl' });
    },

    'after a clearing keeps nothing of before': async (t) => {
      const session = await t.stored({ a: 1 });
      const late = await t.load(session.id);
      session.startAnew();
      await signsIn(t, session);
      late.setAttribute('a', 2);
      assert.equal(await late.save(), 'gone');
      const loaded = await t.load(session.id);
      assert.deepEqual([loaded.attributeNames, loaded.principalName], [[PRINCIPAL_ATTRIBUTE], 'ann']);
      assert.ok(loaded.authenticatedAt);
      session.startAnew();
      session.setAttribute('a', 3);
      await t.saves(session);
      assert.equal((await t.load(session.id)).authenticatedAt, undefined);
    },
  },
};
