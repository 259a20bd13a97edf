import assert from 'node:assert/strict';
import { IndexedSessionRepository, type Session } from '@nest-session/core';
import { TrackedSession } from '@nest-session/core/internal';
import type { UpdateSession } from '@nest-session/core/store';
import type { CheckGroup, Checks } from './check.group.js';
import { NAMES } from './names-and-values.checks.js';
import { FORWARDING_TIME, INTERVAL, MINUTE, SECOND } from './contract.context.js';

/** Changes that a request held open across a rotation must not save. */
const REFUSED: Readonly<Record<string, (session: Session) => void>> = {
  'another id': (session) => void session.changeSessionId(),
  'a principal': (session) => (session.principalName = 'mallory'),
  'no principal': (session) => (session.principalName = undefined),
  'another interval': (session) => (session.maxInactiveInterval = -1),
  'a longer interval': (session) => (session.maxInactiveInterval = 7200),
  'a shorter interval': (session) => (session.maxInactiveInterval = 60),
  'another absolute end': (session) => (session.absoluteTimeout = -1),
  'a later absolute end': (session) => (session.absoluteTimeout = 7200),
};

const refusals: Checks = Object.fromEntries(
  Object.entries(REFUSED).map(([what, change]) => [
    `refuses completely a forwarded save that sets ${what}`,
    async (t) => {
      const victim = await t.stored({ a: 1 }, (each) => {
        each.principalName = 'ann';
        each.absoluteTimeout = 3600;
      });
      const held = await t.load(victim.id);
      await t.rotates(victim);
      held.setAttribute('a', 2);
      change(held);
      assert.equal(await held.save(), 'gone');
      assert.equal(held.tokenToSend, undefined);
      await t.isOver(held.id);
      const session = await t.load(victim.id);
      assert.deepEqual([session.getAttribute('a'), session.principalName], [1, 'ann']);
      assert.deepEqual([session.maxInactiveInterval, session.absoluteTimeout], [INTERVAL / 1000, 3600]);
    },
  ]),
);

/** Rotations that change the principal, of a session in which `before` is signed in, if anybody is. */
const CROSSINGS: Readonly<Record<string, { before?: string; rotations: ((session: Session) => void)[] }>> = {
  'a sign-in of a visitor': { rotations: [signInOf('ann')] },
  'a sign-in of another user': { before: 'ann', rotations: [signInOf('bob')] },
  'a sign-in that keeps an attribute': { before: 'ann', rotations: [(each) => each.signIn('bob', { keep: ['a'] })] },
  'another principal': { before: 'ann', rotations: [named('bob')] },
  'the end of a login': { before: 'ann', rotations: [named(undefined)] },
  'a change of id and then a sign-in': { rotations: [(each) => void each.changeSessionId(), signInOf('ann')] },
  'a sign-in and then a change of id': { rotations: [signInOf('ann'), (each) => void each.changeSessionId()] },
  'a sign-in of another user and one of the first': { before: 'ann', rotations: [signInOf('bob'), signInOf('ann')] },
};

function signInOf(name: string) {
  return (session: Session) => session.signIn(name);
}

/** In a request: elsewhere, the session keeps its id. */
function named(name: string | undefined) {
  return (session: Session) => {
    session.changeSessionId();
    session.principalName = name;
  };
}

/** How a request ends its session. */
const ENDS: Readonly<Record<string, (session: TrackedSession) => void>> = {
  'invalidate()': (session) => session.invalidate(),
  'signOut()': (session) => session.signOut(),
  'an interval of 0': (session) => (session.maxInactiveInterval = 0),
};

const crossings: Checks = Object.fromEntries(
  Object.entries(CROSSINGS).map(([what, { before, rotations }]) => [
    `forwards nothing across ${what}`,
    async (t) => {
      const session = await t.stored({ a: 1, n: 1 }, (each) => before && each.signIn(before));
      const { id } = session;
      const held = async () => TrackedSession.of(await t.load(id));
      const [setting, updating, removing, touching, visitor, timeout] = await Promise.all(
        Array.from({ length: 6 }, held),
      );
      const ending = await Promise.all(Object.values(ENDS).map(async (end) => ({ end, session: await held() })));
      for (const rotate of rotations) {
        rotate(session);
        await t.saves(session);
      }
      const record = await t.recordOf(session.id);
      setting!.setAttribute('a', 2);
      removing!.removeAttribute('a');
      visitor!.setAttribute('nest-session.visitor.x', 1);
      timeout!.maxInactiveInterval = 60;
      for (const late of [setting!, removing!, visitor!, timeout!]) assert.equal(await late.save(), 'gone');
      assert.equal(await updating!.updateAttribute<number>('n', (n = 0) => n + 1), undefined);
      assert.equal(await t.repository.touch(touching!), 'gone');
      assert.equal(await t.repository.deleteById(id), false);
      for (const { end, session: late } of ending) {
        end(late);
        // Where nobody is signed in any more, there is nothing that the client expects to end.
        if (session.principalName === undefined) assert.equal(await late.save(), 'gone');
        else await t.refuses(late);
        assert.deepEqual([late.isDeleted, late.tokenToSend], [false, undefined]);
      }
      await t.isAsBefore(record);
    },
  ]),
);

function changeOfId(id: string, newId: string): UpdateSession {
  return { kind: 'update', id, newId, attributes: new Map(), indexes: new Map() };
}

export const ROTATION: CheckGroup = {
  name: 'rotation',
  checks: {
    'keeps attributes and times': async (t) => {
      const session = await t.stored({ a: 1, b: ['x'] }, (each) => {
        each.maxInactiveInterval = 600;
        each.absoluteTimeout = 7200;
      });
      await t.advance(MINUTE);
      await t.rotates(session);
      assert.deepEqual(await t.attributesOf(session.id), { a: 1, b: ['x'] });
      const loaded = await t.load(session.id, t.other);
      assert.equal(loaded.creationTime, session.creationTime);
      t.isAbout(loaded.lastAccessedTime - session.creationTime, MINUTE);
      assert.deepEqual([loaded.maxInactiveInterval, loaded.absoluteTimeout], [600, 7200]);
    },

    'keeps attributes of every name, large ones too': async (t) => {
      const large = 'ä'.repeat(500_000);
      const session = await t.stored({ large }, (each) => NAMES.forEach((name) => each.setAttribute(name, name)));
      await t.rotates(session);
      const loaded = await t.load(session.id);
      assert.deepEqual(loaded.attributeNames.toSorted(), [...NAMES, 'large'].toSorted());
      for (const name of NAMES) assert.equal(loaded.getAttribute(name), name);
      assert.equal(loaded.getAttribute('large'), large);
    },

    'ends the old id for loading at once': async (t) => {
      const session = await t.stored();
      const previousId = await t.rotates(session);
      assert.notEqual(session.id, previousId);
      await t.isOver(previousId);
      assert.deepEqual(await t.repository.findByIds([previousId]), [null]);
    },

    'renews the session unless the request keeps it idle': async (t) => {
      const [used, idle] = [await t.stored(), await t.stored()];
      await t.advance(20 * MINUTE);
      idle.keepIdle();
      await t.rotates(used);
      await t.rotates(idle);
      await t.advance(10 * MINUTE + 1);
      await t.load(used.id);
      await t.isOver(idle.id);
    },

    'keeps the end of the session': async (t) => {
      const session = await t.stored();
      await t.rotates(session);
      await t.advanceToJustBefore(INTERVAL);
      await t.load(session.id);
      await t.advancePast();
      await t.isOver(session.id);
    },

    'refuses an id from which another session has just been rotated': async (t) => {
      const session = await t.stored({ a: 'mine' });
      let other = await t.stored();
      while (!t.mayReplace(other.id, session.id)) other = await t.stored();
      const taken = await t.rotates(other);
      assert.deepEqual(await t.write(changeOfId(session.id, taken)), { outcome: 'collision' });
      assert.deepEqual(await t.attributesOf(session.id), { a: 'mine' });
      await t.isOver(taken);
    },

    'draws another id when the new one is taken, and leaves the session that has it unchanged': async (t) => {
      const session = await t.stored({ a: 'mine' });
      let other = await t.stored({ a: 'theirs' });
      while (!t.mayReplace(other.id, session.id)) other = await t.stored({ a: 'theirs' });
      assert.deepEqual(await t.write(changeOfId(session.id, other.id)), { outcome: 'collision' });
      t.drawAgain(other);
      assert.equal(session.changeSessionId(), other.id);
      await t.saves(session);
      assert.notEqual(session.id, other.id);
      assert.deepEqual(await t.attributesOf(session.id), { a: 'mine' });
      assert.deepEqual(await t.attributesOf(other.id), { a: 'theirs' });
    },

    'forwards attribute changes and touches of requests that loaded the old id': async (t) => {
      const session = await t.stored({ n: 0, removed: 0 });
      const [saving, removing, updating, touching] = [
        await t.load(session.id),
        await t.load(session.id, t.other),
        await t.load(session.id),
        await t.load(session.id),
      ];
      session.setAttribute('user', 'ann');
      await t.rotates(session);
      assert.deepEqual(await t.attributesOf(session.id), { n: 0, removed: 0, user: 'ann' });
      saving.setAttribute('late', true);
      await t.saves(saving);
      removing.removeAttribute('removed');
      await t.saves(removing);
      assert.equal(await updating.updateAttribute<number>('n', (n = 0) => n + 1), 1);
      assert.equal(await updating.updateAttribute<number>('fresh', (n = 0) => n + 1), 1);
      assert.equal(await t.repository.touch(touching), 'forwarded');
      assert.deepEqual(await t.attributesOf(session.id), { fresh: 1, late: true, n: 1, user: 'ann' });
      await t.isOver(touching.id);
      assert.equal(saving.tokenToSend, undefined);
    },

    'returns `forwarded` for a change that it has made under a later id': async (t) => {
      const { id } = await t.stored();
      const newId = t.idFor(id);
      await t.write(changeOfId(id, newId));
      const update = { kind: 'update', attributes: new Map([['a', '2']]), indexes: new Map() } as const;
      assert.deepEqual(await t.write({ kind: 'touch', id }), { outcome: 'forwarded' });
      assert.deepEqual(await t.write({ ...update, id }), { outcome: 'forwarded' });
      assert.deepEqual(await t.write({ kind: 'touch', id: newId }), { outcome: 'touched' });
      assert.deepEqual(await t.write({ ...update, id: newId }), { outcome: 'saved' });
      assert.deepEqual(await t.write({ kind: 'delete', id }), { outcome: 'forwarded' });
      assert.deepEqual(await t.write({ kind: 'delete', id: newId }), { outcome: 'gone' });
      const { id: other } = await t.stored();
      assert.deepEqual(await t.write({ kind: 'delete', id: other }), { outcome: 'deleted' });
    },

    'renews the session for forwarded saves unless the request keeps it idle': async (t) => {
      const [saved, touched, idle] = [await t.stored(), await t.stored(), await t.stored()];
      const [saving, touching] = [await t.load(saved.id), await t.load(touched.id)];
      const keeping = await t.load(idle.id);
      await t.advance(20 * MINUTE);
      for (const session of [saved, touched, idle]) {
        session.keepIdle();
        await t.rotates(session);
      }
      saving.setAttribute('late', true);
      await t.saves(saving);
      assert.equal(await t.repository.touch(touching), 'forwarded');
      keeping.keepIdle();
      keeping.setAttribute('late', true);
      await t.saves(keeping);
      await t.advance(20 * MINUTE);
      await t.isOver(idle.id);
      await t.load(saved.id);
      await t.load(touched.id);
    },

    'tells by a change of nothing whether a later id has the session, and renews it with none': async (t) => {
      const { id } = await t.stored();
      const newId = t.idFor(id);
      await t.write(changeOfId(id, newId));
      await t.advance(20 * MINUTE - FORWARDING_TIME);
      const rotated = await t.stored();
      await t.write(changeOfId(rotated.id, t.idFor(rotated.id)));
      const look = { kind: 'update', keepsIdle: true, attributes: new Map(), indexes: new Map() } as const;
      assert.deepEqual(await t.write({ ...look, id: rotated.id }), { outcome: 'forwarded' });
      assert.deepEqual(await t.write({ ...look, id: newId }), { outcome: 'saved' });
      assert.deepEqual(await t.write({ ...look, id: t.idFor(id) }), { outcome: 'gone' });
      await t.advance(20 * MINUTE);
      await t.isOver(newId);
    },

    'forwards for 60 s, and no longer': async (t) => {
      const session = await t.stored();
      const [late, tooLate, touching] = [await t.load(session.id), await t.load(session.id), await t.load(session.id)];
      await t.rotates(session);
      await t.advanceToJustBefore(FORWARDING_TIME);
      late.setAttribute('late', 1);
      await t.saves(late);
      assert.equal(await t.repository.touch(touching), 'forwarded');
      await t.advancePast();
      tooLate.setAttribute('late', 2);
      assert.equal(await tooLate.save(), 'gone');
      assert.equal(await t.repository.touch(touching), 'gone');
      assert.deepEqual(await t.attributesOf(session.id), { a: 1, late: 1 });
    },

    'forwards over several rotations': async (t) => {
      const session = await t.stored();
      const [first, touching] = [await t.load(session.id), await t.load(session.id)];
      await t.rotates(session);
      const second = await t.load(session.id);
      await t.rotates(session);
      await t.rotates(session);
      first.setAttribute('first', true);
      await t.saves(first);
      second.setAttribute('second', true);
      await t.saves(second);
      assert.equal(await t.repository.touch(touching), 'forwarded');
      assert.deepEqual(await t.attributesOf(session.id), { a: 1, first: true, second: true });
    },

    'forwards for 60 s from each rotation': async (t) => {
      const session = await t.stored();
      const first = await t.load(session.id);
      await t.rotates(session);
      const second = await t.load(session.id);
      await t.advance(40 * SECOND);
      await t.rotates(session);
      await t.advance(21 * SECOND);
      for (const late of [first, second]) late.setAttribute('late', true);
      assert.equal(await first.save(), 'gone');
      await t.saves(second);
      assert.deepEqual(await t.attributesOf(session.id), { a: 1, late: true });
    },

    'leaves no trace when it is refused': async (t) => {
      const session = await t.stored();
      let other = await t.stored();
      while (!t.mayReplace(other.id, session.id)) other = await t.stored();
      const change = changeOfId(session.id, t.idFor(session.id));
      const conflict = await t.write({ ...change, expected: { name: 'a', text: '2' } });
      assert.deepEqual(conflict, { outcome: 'conflict', current: '1' });
      const both = { ...changeOfId(session.id, other.id), expected: { name: 'a', text: '2' } };
      assert.deepEqual(await t.write(both), conflict);
      assert.deepEqual(await t.write(changeOfId(session.id, other.id)), { outcome: 'collision' });
      assert.equal(await t.repository.touch(session), 'touched');
      const next = t.repository.createSession([session.id]);
      next.setAttribute('a', 1);
      await t.saves(next);
      assert.deepEqual(await t.write(change), { outcome: 'saved' });
    },

    'does not happen when the same step ends the session': async (t) => {
      const { id } = await t.stored();
      const change = changeOfId(id, t.idFor(id));
      assert.deepEqual(await t.write({ ...change, maxInactiveInterval: 0 }), { outcome: 'saved' });
      await t.isOver(id);
      await t.isOver(change.newId!);
      const next = t.repository.createSession([id]);
      next.setAttribute('a', 1);
      await t.saves(next);
    },

    ...refusals,
    ...crossings,

    'lets requests that loaded the old id end the session': async (t) => {
      const session = await t.stored();
      const late = await t.load(session.id);
      await t.rotates(session);
      late.maxInactiveInterval = 0;
      assert.equal(await late.save(), 'gone');
      await t.isOver(session.id);
    },

    'returns to requests that loaded the old id nothing saved since': async (t) => {
      const session = await t.stored({ secret: 'old' });
      const [late, unaware] = [await t.load(session.id), await t.load(session.id)];
      session.setAttribute('secret', 'new');
      session.setAttribute('user', 'ann');
      await t.rotates(session);
      const seen: unknown[] = [];
      const updated = await late.updateAttribute('secret', (current) => {
        seen.push(current);
        return 'mine';
      });
      assert.equal(updated, undefined);
      assert.deepEqual(seen, ['old']);
      assert.equal(await unaware.updateAttribute('user', (current) => current ?? 'mine'), undefined);
      assert.deepEqual(await t.attributesOf(session.id), { secret: 'new', user: 'ann' });
    },

    'happens once when it is sent twice because its reply was lost': async (t) => {
      const { id } = await t.stored();
      const newId = t.idFor(id);
      const change = { ...changeOfId(id, newId), attributes: new Map([['a', '2']]) };
      assert.deepEqual(await t.write(change), { outcome: 'saved' });
      const session = await t.load(newId);
      assert.equal(session.getAttribute('a'), 2);
      session.setAttribute('a', 3);
      await t.saves(session);
      assert.deepEqual(await t.write(change), { outcome: 'saved' });
      assert.deepEqual(await t.attributesOf(newId), { a: 3 });
      await t.rotates(session);
      assert.deepEqual(await t.write(change), { outcome: 'saved' });
      await t.isOver(newId);
      assert.deepEqual(await t.attributesOf(session.id), { a: 3 });
    },

    'that regenerates removes all attributes, also those of requests that it does not know of': async (t) => {
      const session = await t.stored({ planted: 1, kept: 1 }, (each) => (each.principalName = 'visitor'));
      const other = await t.load(session.id, t.other);
      other.setAttribute('late', 1);
      await t.saves(other);
      session.startAnew();
      session.setAttribute('kept', 2);
      const { id } = session;
      await t.saves(session);
      const loaded = await t.load(id, t.other);
      assert.deepEqual([loaded.attributeNames, loaded.getAttribute('kept')], [['kept'], 2]);
      assert.equal(loaded.creationTime, session.creationTime);
      session.setAttribute('next', 3);
      await t.saves(session);
      assert.deepEqual(await t.attributesOf(id), { kept: 2, next: 3 });
    },

    'that regenerates takes the principal that is set after it, or none': async (t) => {
      const [signedIn, anonymous] = [await t.stored({ a: 1 }), await t.stored({ a: 1 })];
      for (const session of [signedIn, anonymous]) {
        session.principalName = 'visitor';
        await t.saves(session);
        session.startAnew();
      }
      signedIn.principalName = 'ann';
      for (const session of [signedIn, anonymous]) await t.saves(session);
      assert.equal((await t.load(signedIn.id)).principalName, 'ann');
      assert.deepEqual(await t.attributesOf(anonymous.id), {});
      if (!(t.repository instanceof IndexedSessionRepository)) return;
      assert.deepEqual(await t.indexed.findByPrincipalName('visitor'), []);
      assert.equal((await t.indexed.findByPrincipalName('ann')).length, 1);
    },

    'that regenerates forwards nothing of the old id': async (t) => {
      const session = await t.stored({ a: 1 });
      const [first, saving, touching, ending] = [
        session.id,
        await t.load(session.id),
        await t.load(session.id),
        await t.load(session.id),
      ];
      await t.rotates(session);
      session.startAnew();
      await t.saves(session);
      const { id } = session;
      saving.setAttribute('a', 2);
      assert.equal(await saving.save(), 'gone');
      assert.equal(await t.repository.touch(touching), 'gone');
      assert.equal(await t.repository.deleteById(first), false);
      ending.invalidate();
      await t.refuses(ending);
      assert.deepEqual(await t.attributesOf(id), {});
      const late = t.repository.createSession([first]);
      late.setAttribute('a', 1);
      await t.refuses(late);
    },

    'that closes the old id keeps all attributes, and forwards nothing of the old id': async (t) => {
      const { id } = await t.stored({ a: 1, b: 2 });
      const [first, touching, ending] = [await t.load(id), await t.load(id), await t.load(id)];
      const newId = t.idFor(id);
      const change = { ...changeOfId(id, newId), closes: true };
      for (let sent = 0; sent < 2; sent++) assert.deepEqual(await t.write(change), { outcome: 'saved' });
      first.setAttribute('a', 3);
      assert.equal(await first.save(), 'gone');
      assert.equal(await t.repository.touch(touching), 'gone');
      assert.equal(await t.repository.deleteById(id), false);
      ending.invalidate();
      await t.refuses(ending);
      assert.deepEqual(await t.attributesOf(newId), { a: 1, b: 2 });
      const late = t.repository.createSession([id]);
      late.setAttribute('a', 1);
      await t.refuses(late);
      // Later ones are as before.
      const after = await t.load(newId);
      await t.rotates(await t.load(newId));
      after.setAttribute('b', 4);
      assert.equal(await after.save(), 'saved');
    },

    'that regenerates happens once when it is sent twice because its reply was lost': async (t) => {
      const { id } = await t.stored();
      const newId = t.idFor(id);
      const change = { ...changeOfId(id, newId), clears: true, attributes: new Map([['a', '2']]) };
      assert.deepEqual(await t.write(change), { outcome: 'saved' });
      const session = await t.load(newId);
      session.setAttribute('b', 3);
      await t.saves(session);
      assert.deepEqual(await t.write(change), { outcome: 'saved' });
      assert.deepEqual(await t.attributesOf(newId), { a: 2, b: 3 });
      await t.repository.deleteById(newId);
      assert.deepEqual(await t.write(change), { outcome: 'gone' });
    },

    'does not renew the session when it is sent again, and is gone when the session is': async (t) => {
      const { id } = await t.stored();
      const newId = t.idFor(id);
      assert.deepEqual(await t.write(changeOfId(id, newId)), { outcome: 'saved' });
      const { lastAccessedTime } = await t.load(newId);
      await t.advance(10 * SECOND);
      assert.deepEqual(await t.write(changeOfId(id, newId)), { outcome: 'saved' });
      assert.equal((await t.load(newId)).lastAccessedTime, lastAccessedTime);
      await t.repository.deleteById(newId);
      assert.deepEqual(await t.write(changeOfId(id, newId)), { outcome: 'gone' });
    },
  },
};
