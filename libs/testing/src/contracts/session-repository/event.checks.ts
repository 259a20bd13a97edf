import assert from 'node:assert/strict';
import {
  IndexedSessionRepository,
  PRINCIPAL_NAME_INDEX_NAME,
  SessionCreatedEvent,
  SessionDeletedEvent,
  type SessionEvent,
  SessionExpiredEvent,
  SessionIdChangedEvent,
  SessionSignedInEvent,
} from '@nest-session/core';
import { PRINCIPAL_ATTRIBUTE, type TrackedSession } from '@nest-session/core/internal';
import { atOnce, ROUNDS } from './at-once.js';
import type { CheckGroup, Checks } from './check.group.js';
import { DAY, INTERVAL, MINUTE, SECOND, type ContractContext } from './contract.context.js';

/** Every way to delete a session, by a request that has set `last` before. */
const DELETIONS: Readonly<Record<string, (session: TrackedSession, t: ContractContext) => Promise<unknown>>> = {
  'deleteById()': (session, t) => t.repository.deleteById(session.id),
  'invalidate()': (session, t) => {
    session.invalidate();
    return t.saves(session);
  },
  'an interval of 0': (session, t) => {
    session.maxInactiveInterval = 0;
    return t.saves(session);
  },
  'an interval of 0 without an access': async (session, t) => {
    await t.advance(MINUTE);
    session.keepIdle();
    session.maxInactiveInterval = 0;
    return t.saves(session);
  },
};

const deletions: Checks = Object.fromEntries(
  Object.entries(DELETIONS).map(([what, end]) => [
    `record a deletion by ${what} once, with the data of the session`,
    async (t) => {
      const session = await t.stored({ cart: ['apple'] }, (each) => (each.principalName = 'ann'));
      await end(session, t);
      const [, event, ...more] = await t.events();
      assert.ok(event instanceof SessionDeletedEvent);
      assert.deepEqual(more, []);
      hasData(event, session);
      assert.equal(event.id, `deleted-${session.id}`);
      await t.expireAll();
      await t.reportExpired();
      assert.equal((await t.events()).length, 2);
    },
  ]),
);

interface Told {
  readonly isAlive: boolean;
  readonly end: 'expired' | 'deleted';
}

/** Steps of requests at the moment when a session expires, and the end that follows from their outcome. */
const AT_THE_END: Readonly<Record<string, (session: TrackedSession, t: ContractContext) => Promise<Told>>> = {
  accessed: async (session, t) => ({ isAlive: (await t.other.touch(session)) === 'touched', end: 'expired' }),
  saved: async (session) => {
    session.setAttribute('late', true);
    return { isAlive: (await session.save()) === 'saved', end: 'expired' };
  },
  deleted: async ({ id }, t) => ({ isAlive: false, end: (await t.other.deleteById(id)) ? 'deleted' : 'expired' }),
};

const ends: Checks = Object.fromEntries(
  Object.entries(AT_THE_END).map(([what, act]) => [
    `record one end of a session that is ${what} while it expires, the one that the request reports`,
    async (t) => {
      for (let round = 0; round < ROUNDS; round++) {
        const { id } = await t.stored({ a: 1 }, (each) => (each.maxInactiveInterval = 60));
        const session = await t.load(id, t.other);
        await t.advance(MINUTE - round);
        const [{ isAlive, end }] = await atOnce(
          round,
          () => act(session, t),
          () => t.reportExpired(),
        );
        if (isAlive) await t.load(id);
        else await t.isOver(id);
        await t.advance(MINUTE + 1);
        await t.reportExpired();
        await t.isOver(id);
        assert.deepEqual(await t.eventTypes(id), ['created', end]);
      }
    },
  ]),
);

function hasData(event: SessionEvent, session: TrackedSession): void {
  assert.equal(event.sessionId, session.id);
  assert.equal(event.dataLost, false);
  assert.equal(event.principalName, 'ann');
  assert.equal(event.session.id, session.id);
  assert.deepEqual(event.session.getAttribute('cart'), ['apple']);
  assert.equal(event.session.creationTime, session.creationTime);
}

export const EVENTS: CheckGroup = {
  name: 'events',
  needs: 'events',
  checks: {
    'record the creation of a session when it is stored': async (t) => {
      t.repository.createSession().setAttribute('a', 1);
      assert.deepEqual(await t.events(), []);
      const session = await t.stored({ cart: ['apple'] }, (each) => (each.principalName = 'ann'));
      const [event, ...more] = await t.events();
      assert.ok(event instanceof SessionCreatedEvent);
      assert.deepEqual(more, []);
      hasData(event, session);
      assert.equal(event.id, `created-${session.id}`);
      assert.equal(event.at, session.creationTime);
      const { maxInactiveInterval, absoluteTimeout } = event.session;
      assert.deepEqual([maxInactiveInterval, absoluteTimeout], [INTERVAL / SECOND, -1]);
    },

    'record a rotation under the new id, with the previous one': async (t) => {
      const session = await t.stored({ cart: ['apple'] }, (each) => (each.principalName = 'ann'));
      const previousId = await t.rotates(session);
      const event = (await t.events()).at(-1);
      assert.ok(event instanceof SessionIdChangedEvent);
      hasData(event, session);
      assert.equal(event.id, `id-changed-${session.id}`);
      assert.equal(event.previousSessionId, previousId);
      assert.deepEqual(await t.eventTypes(), ['created', 'id-changed']);
    },

    'record a sign-in, whatever the visitor had before, with who and which device': async (t) => {
      const id = t.repository.createSession().id;
      const newId = t.idFor(id);
      const [phone, laptop] = [{ address: '10.0.0.0' }, { userAgent: 'Firefox' }];
      const indexes = new Map([[PRINCIPAL_NAME_INDEX_NAME, 'ann']]);
      const attributes = new Map([
        [PRINCIPAL_ATTRIBUTE, '"ann"'],
        ['cart', '["apple"]'],
      ]);
      const change = { attributes, indexes, maxInactiveInterval: INTERVAL / SECOND, absoluteTimeout: -1 };
      const device = JSON.stringify(phone);
      await t.write({ ...change, kind: 'create', id, presentedIds: [], signsIn: true, device });
      await isSignIn(id, phone, ['created', 'signed-in']);
      const signIn = { butNot: [] };
      await t.write({ ...change, kind: 'update', id, newId, signIn, device: JSON.stringify(laptop) });
      await isSignIn(newId, laptop, ['id-changed', 'signed-in']);
      // The session may have changed since.
      const { principalName, device: client } = (await t.events(id)).at(-1)!;
      assert.deepEqual([principalName, client], ['ann', phone]);
      await t.write({ kind: 'delete', id: newId });
      assert.deepEqual((await t.events(newId)).at(-1)!.device, laptop);

      async function isSignIn(sessionId: string, from: SessionEvent['device'], types: string[]): Promise<void> {
        assert.deepEqual(await t.eventTypes(sessionId), types);
        const event = (await t.events(sessionId)).at(-1);
        assert.ok(event instanceof SessionSignedInEvent);
        hasData(event, await t.load(sessionId));
        assert.equal(event.id, `signed-in-${sessionId}`);
        assert.equal(event.at, event.session.authenticatedAt);
        assert.deepEqual(event.device, from);
      }
    },

    ...deletions,

    'say why a session was deleted': async (t) => {
      // Another check ends every session.
      type Reason = Exclude<SessionDeletedEvent['reason'], 'everybody'>;
      const ends: Record<Reason, (session: TrackedSession) => Promise<unknown>> = {
        'signed-out': (session) => (session.signOut(), session.save()),
        invalidated: (session) => (session.invalidate(), session.save()),
        revoked: ({ id }) => t.repository.deleteById(id),
        limit: ({ id }) => t.write({ kind: 'delete', id, reason: 'limit' }),
      };
      for (const [reason, end] of Object.entries(ends)) {
        const session = await t.stored({ cart: ['apple'] }, (each) => (each.principalName = 'ann'));
        await end(session);
        const event = (await t.events(session.id)).at(-1);
        assert.ok(event instanceof SessionDeletedEvent);
        assert.equal(event.reason, reason);
      }
      const short = await t.stored({ a: 1 });
      short.maxInactiveInterval = 0;
      await t.saves(short);
      const event = (await t.events(short.id)).at(-1);
      assert.equal((event as SessionDeletedEvent).reason, 'invalidated');
    },

    'record a deletion of each session that is ended with the others of its principal': async (t) => {
      if (!(t.repository instanceof IndexedSessionRepository)) return;
      const sessions: TrackedSession[] = [];
      for (let i = 0; i < 5; i++) sessions.push(await t.stored({ i }, (session) => (session.principalName = 'ann')));
      const [one, kept, ...others] = sessions;
      const index = [PRINCIPAL_NAME_INDEX_NAME, 'ann'] as const;
      assert.equal(await t.repository.deleteIfListed(one!.id, ...index), true);
      assert.equal(await t.repository.deleteIfListed(kept!.id, PRINCIPAL_NAME_INDEX_NAME, 'bob'), false);
      assert.equal(await t.repository.deleteByIndex(...index, [kept!.id]), 3);
      for (const session of [one!, ...others]) {
        const [, event, ...more] = await t.events(session.id);
        assert.ok(event instanceof SessionDeletedEvent);
        assert.deepEqual(more, []);
        assert.equal(event.session.getAttribute('i'), session.getAttribute('i'));
        assert.deepEqual([event.principalName, event.reason], ['ann', 'revoked']);
      }
      assert.deepEqual(await t.eventTypes(kept!.id), ['created']);
    },

    'record a deletion of each session when every session ends': async (t) => {
      const sessions = [await t.stored({ n: 1 }), await t.stored({ n: 2 }, (each) => (each.maxInactiveInterval = -1))];
      const expired = await t.stored({ n: 3 }, (each) => (each.maxInactiveInterval = 60));
      await t.advance(61 * SECOND);
      try {
        await t.repository.endEverySession();
      } catch {
        return; // Not every store can do that.
      }
      await t.reportExpired();
      await t.reportExpired();
      for (const session of sessions) {
        const [, event, ...more] = await t.events(session.id);
        assert.ok(event instanceof SessionDeletedEvent);
        assert.deepEqual(more, []);
        assert.equal(event.session.getAttribute('n'), session.getAttribute('n'));
        assert.equal(event.reason, 'everybody');
      }
      assert.deepEqual(await t.eventTypes(expired.id), ['created', 'expired']);
    },

    'record a deletion by an old id under the current id': async (t) => {
      const session = await t.stored({ cart: ['apple'] }, (each) => (each.principalName = 'ann'));
      const previousId = await t.rotates(session);
      assert.equal(await t.repository.deleteById(previousId), true);
      assert.deepEqual(await t.eventTypes(), ['created', 'id-changed', 'deleted']);
      hasData((await t.events()).at(-1)!, session);
    },

    'have the attributes that a request sets while it ends the session under its old id': async (t) => {
      const session = await t.stored({ cart: [] }, (each) => (each.principalName = 'ann'));
      const late = await t.load(session.id);
      await t.rotates(session);
      late.setAttribute('cart', ['apple']);
      late.maxInactiveInterval = 0;
      assert.equal(await late.save(), 'gone');
      assert.deepEqual(await t.eventTypes(), ['created', 'id-changed', 'deleted']);
      hasData((await t.events()).at(-1)!, session);
    },

    'record the end of a session under its stored id when the same step would rotate it': async (t) => {
      const session = await t.stored({ cart: ['apple'] }, (each) => (each.principalName = 'ann'));
      const update = { kind: 'update', id: session.id, attributes: new Map(), indexes: new Map() } as const;
      await t.write({ ...update, newId: t.idFor(session.id), maxInactiveInterval: 0 });
      assert.deepEqual(await t.eventTypes(), ['created', 'deleted']);
      hasData((await t.events()).at(-1)!, session);
    },

    'have all attributes, large ones too, and the times of the session': async (t) => {
      const attributes = { a: 1, b: ['x'], large: 'ä'.repeat(500_000), last: null };
      const [deleted, expired] = [await t.stored(attributes), await t.stored(attributes)];
      for (const session of [deleted, expired]) {
        session.absoluteTimeout = 7200;
        await t.saves(session);
      }
      await t.advance(MINUTE);
      for (const session of [deleted, expired]) await t.repository.touch(session);
      const { lastAccessedTime } = await t.load(expired.id);
      await t.advance(MINUTE);
      await t.repository.deleteById(deleted.id);
      await t.expireAll();
      await t.reportExpired();
      for (const { id, creationTime } of [deleted, expired]) {
        const { session, dataLost } = (await t.events(id)).at(-1)!;
        assert.equal(dataLost, false);
        assert.deepEqual([session.creationTime, session.absoluteTimeout], [creationTime, 7200]);
        t.isAbout(session.lastAccessedTime - creationTime, MINUTE);
        assert.deepEqual(session.attributeNames.toSorted(), ['a', 'b', 'large']);
        assert.deepEqual([session.getAttribute('a'), session.getAttribute('b')], [1, ['x']]);
        assert.equal(session.getAttribute('large'), attributes.large);
      }
      assert.equal((await t.events(expired.id)).at(-1)!.session.lastAccessedTime, lastAccessedTime);
    },

    'have the time at which the expiry was noticed': async (t) => {
      const session = await t.stored();
      await t.advance(INTERVAL + 10 * SECOND);
      await t.reportExpired();
      const event = (await t.events()).at(-1)!;
      assert.equal(event.type, 'expired');
      t.isAbout(event.at - session.creationTime, INTERVAL + 10 * SECOND);
    },

    'record the end of a session whose id is drawn again before its expiry is noticed': async (t) => {
      const session = await t.stored({ cart: ['apple'] }, (each) => (each.principalName = 'ann'));
      let other = await t.stored({ a: 1 }, (each) => (each.maxInactiveInterval = -1));
      while (!t.mayReplace(session.id, other.id)) {
        other = await t.stored({ a: 1 }, (each) => (each.maxInactiveInterval = -1));
      }
      await t.expireAll();
      const times = { maxInactiveInterval: -1, absoluteTimeout: -1 };
      const { id } = session;
      const nothing = { presentedIds: [], attributes: new Map(), indexes: new Map() };
      await t.write({ kind: 'create', id, ...times, ...nothing });
      await t.write({ ...nothing, kind: 'update', id: other.id, newId: id });
      await t.reportExpired();
      const expired = (await t.events(id)).filter((event) => event instanceof SessionExpiredEvent);
      assert.equal(expired.length, 1);
      hasData(expired[0]!, session);
    },

    'record the end of a session with a timeout of 0 as deleted, whatever else is saved with it': async (t) => {
      const others: Record<string, (session: TrackedSession) => unknown> = {
        nothing: () => undefined,
        'an attribute': (session) => session.setAttribute('a', 2),
        'a rotation': (session) => session.changeSessionId(),
        'a principal': (session) => (session.principalName = 'ann'),
        'a sign-in': (session) => session.signIn('ann'),
        'a regeneration': (session) => session.startAnew(),
      };
      for (const timeout of ['maxInactiveInterval', 'absoluteTimeout'] as const) {
        for (const [what, change] of Object.entries(others)) {
          const session = await t.stored();
          const { id } = session;
          change(session);
          session[timeout] = 0;
          await t.saves(session);
          assert.equal(session.isDeleted, true, what);
          await t.isOver(id);
          await t.isOver(session.id);
          assert.deepEqual(await t.eventTypes(id, session.id), ['created', 'deleted'], `${timeout}, ${what}`);
        }
      }
    },

    'record an expiry once, with the data of the session': async (t) => {
      const session = await t.stored({ cart: ['apple'] }, (each) => (each.principalName = 'ann'));
      await t.expireAll();
      await t.isOver(session.id);
      await t.reportExpired();
      const [, event, ...more] = await t.events();
      assert.ok(event instanceof SessionExpiredEvent);
      assert.deepEqual(more, []);
      hasData(event, session);
      assert.equal(event.id, `expired-${session.id}`);
      assert.equal(event.session.maxInactiveInterval, INTERVAL / SECOND);
      assert.ok(event.at > session.creationTime + INTERVAL);
      await t.reportExpired();
      assert.equal((await t.events()).length, 2);
    },

    'record an expiry once also when several nodes look for expired sessions at the same time': async (t) => {
      const sessions = [];
      for (let i = 0; i < 150; i++) sessions.push(await t.stored({ i }));
      await t.expireAll();
      await Promise.all([t.reportExpired(), t.reportExpired(), t.reportExpired()]);
      const expired = (await t.events()).filter((event) => event instanceof SessionExpiredEvent);
      assert.deepEqual(expired.map(({ sessionId }) => sessionId).toSorted(), sessions.map(({ id }) => id).toSorted());
      const data = expired.map(({ session }) => session.getRequiredAttribute<number>('i'));
      assert.deepEqual(
        data.toSorted((a, b) => a - b),
        sessions.map((_, i) => i),
      );
    },

    'record no expiry before the end of a session, also when it was renewed since': async (t) => {
      const session = await t.stored();
      const longer = await t.stored();
      longer.maxInactiveInterval = 120 * 60;
      await t.saves(longer);
      for (let renewal = 0; renewal < 3; renewal++) {
        await t.advance(20 * MINUTE);
        await t.reportExpired();
        await t.repository.touch(session);
      }
      await t.advanceToJustBefore(INTERVAL);
      await t.reportExpired();
      assert.deepEqual(await t.eventTypes(), ['created', 'created']);
      await t.advancePast();
      await t.reportExpired();
      assert.deepEqual(await t.eventTypes(session.id), ['created', 'expired']);
      assert.deepEqual(await t.eventTypes(longer.id), ['created']);
    },

    'record the expiry of a session whose timeout was shortened': async (t) => {
      const [shorter, limited, little] = [await t.stored(), await t.stored(), await t.stored()];
      shorter.maxInactiveInterval = 5 * 60;
      limited.absoluteTimeout = 5 * 60;
      little.maxInactiveInterval = 28 * 60;
      for (const session of [shorter, limited, little]) await t.saves(session);
      await t.advance(5 * MINUTE + 1);
      await t.reportExpired();
      for (const { id } of [shorter, limited]) assert.deepEqual(await t.eventTypes(id), ['created', 'expired']);
      await t.advance(23 * MINUTE);
      await t.reportExpired();
      assert.deepEqual(await t.eventTypes(little.id), ['created', 'expired']);
    },

    'record the expiry of a rotated session once, under the new id': async (t) => {
      const session = await t.stored({ cart: ['apple'] }, (each) => (each.principalName = 'ann'));
      session.maxInactiveInterval = 20;
      const previousId = await t.rotates(session);
      await t.advance(20 * SECOND + 1);
      await t.reportExpired();
      assert.deepEqual(await t.eventTypes(previousId), ['created']);
      assert.deepEqual(await t.eventTypes(session.id), ['id-changed', 'expired']);
      hasData((await t.events()).at(-1)!, session);
    },

    'record the expiry of a session without attributes': async (t) => {
      const session = await t.stored();
      session.removeAttribute('a');
      await t.saves(session);
      await t.expireAll();
      await t.reportExpired();
      const event = (await t.events()).at(-1)!;
      assert.deepEqual([event.type, event.session.attributeNames, event.dataLost], ['expired', [], false]);
    },

    'record the expiry of a session that never expired before its timeout was set': async (t) => {
      const session = await t.stored({ a: 1 }, (each) => (each.maxInactiveInterval = -1));
      await t.advance(DAY);
      await t.reportExpired();
      assert.deepEqual(await t.eventTypes(), ['created']);
      session.maxInactiveInterval = 60;
      await t.saves(session);
      await t.advance(MINUTE + 1);
      await t.reportExpired();
      assert.deepEqual(await t.eventTypes(), ['created', 'expired']);
    },

    'record an expiry when a save sets timeouts that have already passed': async (t) => {
      const [limited, idle] = [await t.stored(), await t.stored()];
      await t.advance(20 * MINUTE);
      limited.absoluteTimeout = 10 * 60;
      idle.keepIdle();
      idle.maxInactiveInterval = 10 * 60;
      for (const session of [limited, idle]) {
        session.setAttribute('last', 'words');
        await t.saves(session);
        const event = (await t.events(session.id)).at(-1);
        assert.ok(event instanceof SessionExpiredEvent);
        assert.equal(event.session.getAttribute('last'), 'words');
      }
      await t.expireAll();
      await t.reportExpired();
      assert.equal((await t.events()).length, 4);
    },

    'record only the first end of a session': async (t) => {
      const { id } = await t.stored({ a: 1 }, (each) => (each.maxInactiveInterval = 60));
      await t.advance(MINUTE + 1);
      assert.equal(await t.repository.deleteById(id), false);
      await t.reportExpired();
      assert.equal(await t.repository.deleteById(id), false);
      assert.deepEqual(await t.eventTypes(), ['created', 'expired']);
    },

    ...ends,

    'have the last values saved before the end, and none that came too late': async (t) => {
      const { id } = await t.stored({ a: 1 });
      const late = await t.load(id);
      const session = await t.load(id);
      session.setAttribute('a', 2);
      session.maxInactiveInterval = 0;
      await t.saves(session);
      late.setAttribute('a', 3);
      late.setAttribute('late', true);
      assert.equal(await late.save(), 'gone');
      const event = (await t.events()).at(-1)!;
      assert.equal(event.type, 'deleted');
      assert.deepEqual(event.session.attributeNames, ['a']);
      assert.equal(event.session.getAttribute('a'), 2);
    },

    'have no value that was saved after the expiry': async (t) => {
      const { id } = await t.stored({ a: 1 });
      const late = await t.load(id);
      const { lastAccessedTime } = late;
      await t.expireAll();
      late.setAttribute('a', 2);
      late.setAttribute('late', true);
      assert.equal(await t.repository.touch(late), 'gone');
      assert.equal(await late.save(), 'gone');
      await t.reportExpired();
      assert.equal(await t.repository.touch(late), 'gone');
      const { session, type } = (await t.events()).at(-1)!;
      assert.equal(type, 'expired');
      assert.deepEqual([session.attributeNames, session.getAttribute('a')], [['a'], 1]);
      assert.equal(session.lastAccessedTime, lastAccessedTime);
    },

    'record no change that was refused, and a change that was sent twice once': async (t) => {
      const session = await t.stored({ a: 1 });
      let other = await t.stored();
      while (!t.mayReplace(other.id, session.id)) other = await t.stored();
      const { length } = await t.events();
      const { id } = session;
      const update = { kind: 'update', id, attributes: new Map(), indexes: new Map() } as const;
      const times = { maxInactiveInterval: 0, absoluteTimeout: -1 };
      const newId = t.idFor(id);
      await t.write({ ...update, ...times, kind: 'create', presentedIds: [] });
      await t.write({ ...update, newId: other.id });
      await t.write({ ...update, newId, expected: { name: 'a', text: '2' } });
      await t.write({ ...update, maxInactiveInterval: 0, expected: { name: 'a', text: '2' } });
      assert.equal((await t.events()).length, length);
      for (let i = 0; i < 2; i++) await t.write({ ...update, newId });
      assert.deepEqual(await t.eventTypes(id, newId), ['created', 'id-changed']);
    },

    'record nothing but creations, rotations, sign-ins and ends': async (t) => {
      const session = await t.stored({ n: 0 }, (each) => (each.principalName = 'ann'));
      const late = await t.load(session.id);
      session.setAttribute('a', 1);
      session.principalName = 'bob';
      await t.saves(session);
      session.maxInactiveInterval = 600;
      session.absoluteTimeout = 7200;
      await t.saves(session);
      await t.repository.touch(session);
      await session.updateAttribute<number>('n', (n = 0) => n + 1);
      await t.load(session.id);
      await t.rotates(session);
      await t.repository.touch(late);
      late.setAttribute('late', true);
      await t.saves(late);
      late.changeSessionId();
      assert.equal(await late.save(), 'gone');
      const stranger = t.repository.createSession([late.id]);
      await t.repository.deleteById(stranger.id);
      assert.deepEqual(await t.eventTypes(), ['created', 'id-changed']);
    },

    'are in order, with times by the clock of the store': async (t) => {
      const session = await t.stored();
      await t.advance(MINUTE);
      const first = await t.rotates(session);
      await t.advance(MINUTE);
      const second = await t.rotates(session);
      await t.advance(MINUTE);
      await t.repository.deleteById(session.id);
      const events = await t.events(first, second, session.id);
      assert.deepEqual(
        events.map(({ id }) => id),
        [`created-${first}`, `id-changed-${second}`, `id-changed-${session.id}`, `deleted-${session.id}`],
      );
      events.forEach(({ at }, i) => t.isAbout(at - session.creationTime, i * MINUTE));
    },
  },
};
