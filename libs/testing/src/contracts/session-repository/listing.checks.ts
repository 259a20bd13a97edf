import assert from 'node:assert/strict';
import { PRINCIPAL_NAME_INDEX_NAME, type Session, SessionGoneError, type SessionInfo } from '@nest-session/core';
import type { TrackedSession } from '@nest-session/core/internal';
import type { CheckGroup } from './check.group.js';
import { INTERVAL, MINUTE, SECOND, type ContractContext } from './contract.context.js';

/** More than a store reads or ends at once. */
const MANY = 120;

const signedInAs = (name: string) => (session: Session) => {
  session.principalName = name;
};

const open = (t: ContractContext, name = 'ann', ...apartFrom: Session[]) =>
  t.stored({ a: 1 }, signedInAs(name), { apartFrom: apartFrom.map(({ id }) => id) });

/** What is listed of a principal; `meanwhile` runs after this many sessions were read. */
async function listed(
  t: ContractContext,
  name: string,
  meanwhile?: { readonly after: number; readonly step: () => Promise<unknown> },
): Promise<SessionInfo[]> {
  const infos: SessionInfo[] = [];
  for await (const info of t.indexed.listByIndex(PRINCIPAL_NAME_INDEX_NAME, name)) {
    infos.push(info);
    if (infos.length === meanwhile?.after) await meanwhile.step();
  }
  return infos;
}

const idsOf = async (t: ContractContext, name: string) => (await listed(t, name)).map(({ id }) => id);
const count = (t: ContractContext, name: string) => t.indexed.countByIndex(PRINCIPAL_NAME_INDEX_NAME, name);
const endAll = (t: ContractContext, name: string, except?: readonly string[]) =>
  t.indexed.deleteByIndex(PRINCIPAL_NAME_INDEX_NAME, name, except);
/** What the save of a request becomes that began then, by the monotonic clock, and changes a session. */
async function savedBy(begunAt: number, session: TrackedSession, change: (session: TrackedSession) => void) {
  session.bindTo({ headersSent: false }, { caller: { begunAt: () => begunAt, endedAll: () => undefined } });
  change(session);
  return session.save().catch((error: unknown) => {
    assert.ok(error instanceof SessionGoneError);
    return 'revoked';
  });
}

const endIf = (t: ContractContext, id: string, name: string) =>
  t.indexed.deleteIfListed(id, PRINCIPAL_NAME_INDEX_NAME, name);

/** Sessions of one principal that were created in this order, some of them at the same time. */
async function many(t: ContractContext): Promise<Session[]> {
  const sessions: Session[] = [];
  for (let i = 0; i < MANY; i++) {
    if (i % 20 === 0) await t.advance(SECOND);
    sessions.push(await open(t));
  }
  return sessions;
}

export const LISTING: CheckGroup = {
  name: 'listing',
  needs: 'indexes',
  checks: {
    'begins with the session that signed in last, which need not be the youngest': async (t) => {
      const first = await open(t);
      await t.advance(MINUTE);
      const second = await open(t, 'ann', first);
      await t.advance(MINUTE);
      first.signIn('ann');
      await t.saves(first);
      await t.advance(MINUTE);
      // As a rotation, it changes no place.
      second.changeSessionId();
      await t.saves(second);
      const infos = await listed(t, 'ann');
      assert.deepEqual(
        infos.map(({ id }) => id),
        [first.id, second.id],
      );
      assert.equal(infos[0]!.authenticatedAt, first.authenticatedAt);
    },

    'has the times of each session, the latest sign-in first': async (t) => {
      const first = await open(t);
      await t.advance(MINUTE);
      const second = await open(t, 'ann', first);
      await t.advance(MINUTE);
      const endless = (session: Session) => {
        session.principalName = 'ann';
        session.maxInactiveInterval = -1;
      };
      const third = await t.stored({ a: 1 }, endless, { apartFrom: [second.id] });
      await open(t, 'bob');
      await t.repository.touch(await t.load(first.id));
      const infos = await listed(t, 'ann');
      assert.deepEqual(
        infos.map(({ id }) => id),
        [third.id, second.id, first.id],
      );
      for (const info of infos) {
        const { creationTime, lastAccessedTime, maxInactiveInterval } = await t.load(info.id);
        const { timeToLive, ...others } = info;
        const unset = { authenticatedAt: undefined, device: undefined };
        assert.deepEqual(others, { id: info.id, creationTime, lastAccessedTime, maxInactiveInterval, ...unset });
        if (info.id === third.id) assert.equal(timeToLive, undefined);
        else t.isAbout(INTERVAL - timeToLive!, info.id === first.id ? 0 : MINUTE);
      }
      assert.deepEqual(await listed(t, 'carol'), []);
    },

    'keeps the place of a session that is rotated': async (t) => {
      const first = await open(t);
      await t.advance(MINUTE);
      const second = await open(t, 'ann', first);
      await t.advance(MINUTE);
      await t.rotates(first);
      assert.deepEqual(await idsOf(t, 'ann'), [second.id, first.id]);
    },

    'has only live sessions, of which each counts': async (t) => {
      const [deleted, expired, kept] = [await open(t), await open(t), await open(t)];
      assert.equal(await count(t, 'ann'), 3);
      await t.repository.deleteById(deleted.id);
      assert.equal(await count(t, 'ann'), 2);
      await t.advance(20 * MINUTE);
      await t.repository.touch(kept);
      await t.advance(20 * MINUTE);
      assert.deepEqual(await idsOf(t, 'ann'), [kept.id]);
      await t.isOver(expired.id);
      await t.reportExpired();
      assert.equal(await count(t, 'ann'), 1);
      assert.equal(await count(t, 'carol'), 0);
    },

    'has all of many sessions once, the latest first': async (t) => {
      const sessions = await many(t);
      const infos = await listed(t, 'ann');
      assert.deepEqual(infos.map(({ id }) => id).toSorted(), sessions.map(({ id }) => id).toSorted());
      const times = infos.map(({ creationTime }) => creationTime);
      assert.deepEqual(
        times,
        times.toSorted((a, b) => b - a),
      );
      assert.equal(await count(t, 'ann'), MANY);
    },

    'misses no session that is rotated while it is read': async (t) => {
      const sessions = await many(t);
      const before = sessions.map(({ id }) => id);
      const infos = await listed(t, 'ann', {
        after: 30,
        step: async () => {
          for (const session of sessions) await t.rotates(session);
        },
      });
      const seen = new Set(infos.map(({ id }) => id));
      const missing = sessions.filter(({ id }, i) => !seen.has(id) && !seen.has(before[i]!));
      assert.deepEqual(missing, []);
    },

    'shows the device of the last change that has one': async (t) => {
      const id = t.idFor((await t.stored()).id);
      const nothing = { presentedIds: [], attributes: new Map(), indexes: new Map() };
      const indexes = new Map([[PRINCIPAL_NAME_INDEX_NAME, 'ann']]);
      const times = { maxInactiveInterval: INTERVAL / SECOND, absoluteTimeout: -1 };
      const [phone, laptop] = [{ userAgent: 'Phone', address: '192.0.2.0' }, { userAgent: 'Läptop' }];
      const device = async () => (await listed(t, 'ann'))[0]?.device;
      await t.write({ ...nothing, kind: 'create', id, ...times, device: JSON.stringify(phone), indexes });
      assert.deepEqual(await device(), phone);
      await t.write({ ...nothing, kind: 'update', id, attributes: new Map([['device', '"forged"']]) });
      assert.deepEqual(await device(), phone);
      const next = t.idFor(id);
      await t.write({ ...nothing, kind: 'update', id, newId: next, device: JSON.stringify(laptop) });
      assert.deepEqual(await device(), laptop);
      await t.rotates(await t.load(next));
      assert.deepEqual(await device(), laptop);
    },

    'ends a session only for the principal that has it': async (t) => {
      const [one, two] = [await open(t), await open(t, 'bob')];
      assert.equal(await endIf(t, one.id, 'bob'), false);
      assert.equal(await endIf(t, one.id, ''), false);
      assert.equal(await endIf(t, 'unknown', 'ann'), false);
      assert.equal(await endIf(t, (await t.stored()).id, 'ann'), false);
      await t.load(one.id);
      assert.equal(await endIf(t, one.id, 'ann'), true);
      assert.equal(await endIf(t, one.id, 'ann'), false);
      await t.isOver(one.id);
      const before = await t.rotates(two);
      assert.equal(await endIf(t, before, 'ann'), false);
      assert.equal(await endIf(t, before, 'bob'), true);
      await t.isOver(two.id);
    },

    'ends the sessions of a principal but one, and no others': async (t) => {
      const sessions = await many(t);
      const [bobs, kept] = [await open(t, 'bob'), sessions[100]!];
      assert.equal(await endAll(t, 'ann', [kept.id]), MANY - 1);
      assert.deepEqual(await idsOf(t, 'ann'), [kept.id]);
      assert.deepEqual(await idsOf(t, 'bob'), [bobs.id]);
      for (const { id } of sessions.filter((session) => session !== kept)) await t.isOver(id);
      await t.load(kept.id);
      assert.equal(await endAll(t, 'ann', [kept.id]), 0);
      assert.equal(await endAll(t, 'ann'), 1);
      assert.equal(await endAll(t, 'ann'), 0);
      assert.equal(await count(t, 'ann'), 0);
      await t.load(bobs.id);
    },

    'ends sessions that are rotated meanwhile': async (t) => {
      const sessions = await many(t);
      const ending = endAll(t, 'ann');
      const rotating = sessions.map((session) => {
        session.changeSessionId();
        return session.save();
      });
      assert.equal(await ending, MANY);
      await Promise.all(rotating);
      assert.equal(await count(t, 'ann'), 0);
      for (const { id } of sessions) await t.isOver(id);
    },

    'ends all sessions of a principal for requests as well that began before and sign them in later': async (t) => {
      const [visitors, others] = [[await t.stored()], [await t.stored()]];
      for (let i = 0; i < 3; i++) {
        visitors.push(await t.stored({ a: 1 }, undefined, { apartFrom: [visitors.at(-1)!.id] }));
        others.push(await t.load((await t.stored()).id, t.other));
      }
      // Earlier than the end, whatever fraction of a millisecond a store drops: its clock may stand still.
      const before = performance.now() - 2 * SECOND;
      assert.equal(await endAll(t, 'ann'), 0);
      await t.advance(SECOND);
      for (const visitor of [...visitors, ...others]) {
        const { id } = visitor;
        assert.equal(await savedBy(before, visitor, (each) => each.signIn('ann')), 'revoked');
        // Nothing was stored, and nothing has ended.
        assert.equal((await t.load(id)).principalName, undefined);
        const assigning = await t.load(id);
        assert.equal(await savedBy(before, assigning, (each) => (each.principalName = 'ann')), 'revoked');
        assert.equal(await savedBy(before, t.create({}), (each) => each.signIn('ann')), 'revoked');
      }
      assert.equal(await count(t, 'ann'), 0);
      assert.equal(await savedBy(before, t.create({}), (each) => each.signIn('bob')), 'saved');
    },

    'ends all sessions of a principal, who then signs in by requests that begin later': async (t) => {
      const [known, visitor, late] = [await open(t), await t.stored(), await t.stored()];
      assert.equal(await endAll(t, 'ann', [known.id]), 0);
      const after = performance.now();
      // The clock of the store may stand still, while that of the process does not.
      await t.advance(MINUTE);
      for (const session of [known, visitor, t.create({})]) {
        assert.equal(await savedBy(after, session, (each) => each.signIn('ann')), 'saved');
      }
      // What changes outside of a request has no beginning.
      late.signIn('ann');
      await t.saves(late);
      assert.equal(await count(t, 'ann'), 4);
      await t.advance(MINUTE);
      assert.equal(await endAll(t, 'ann'), 4);
    },

    'ends all sessions of a principal, of which one that stays is signed in to by no request that began before': async (
      t,
    ) => {
      const kept = await open(t);
      const before = performance.now() - SECOND;
      assert.equal(await endAll(t, 'ann', [kept.id]), 0);
      assert.equal(await savedBy(before, await t.load(kept.id), (each) => each.signIn('ann')), 'revoked');
      await t.load(kept.id);
      // An attribute is no sign-in.
      assert.equal(await savedBy(before, await t.load(kept.id), (each) => each.setAttribute('a', 2)), 'saved');
    },

    'ends no session that has expired, nor one that has another principal by then': async (t) => {
      const [expired, renamed] = [await open(t), await open(t)];
      await t.advance(20 * MINUTE);
      renamed.principalName = 'bob';
      await t.saves(renamed);
      // A store may still have the data of what has just expired.
      await t.advance(11 * MINUTE);
      assert.equal(await endAll(t, 'ann'), 0);
      await t.isOver(expired.id);
      await t.load(renamed.id);
    },
  },
};
