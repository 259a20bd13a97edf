import { ManualClock } from '@nest-session/testing';
import {
  type SessionEvent,
  SessionCreatedEvent,
  SessionDeletedEvent,
  SessionExpiredEvent,
  SessionIdChangedEvent,
} from '../../src/events/session.events.js';
import { MapSessionRepository } from '../../src/repository/map-session.repository.js';
import { PRINCIPAL_NAME_INDEX_NAME, type Session } from '../../src/session/session.js';
import { generateSessionKey } from '../../src/session/session-ids.js';
import type { SessionChange, WriteReply } from '../../src/session/session-record.js';
import type { TrackedSession } from '../../src/session/tracked-session.js';

const NOBODY = generateSessionKey().id;
const NO_CHANGES = { attributes: new Map(), indexes: new Map() };

/** Can be asked what sessions ask it. */
class MapStore extends MapSessionRepository {
  override write(change: SessionChange): Promise<WriteReply> {
    return super.write(change);
  }
}

describe('MapSessionRepository', () => {
  let clock: ManualClock;
  let events: SessionEvent[];
  let repository: MapStore;

  beforeEach(() => {
    clock = new ManualClock();
    events = [];
    const dispatcher = { dispatch: async (event: SessionEvent) => void events.push(event), broadcast: async () => {} };
    repository = new MapStore({ timeout: 60, clock, dispatcher });
  });

  async function stored(attributes: Record<string, unknown> = { a: 1 }): Promise<Session> {
    const session = repository.createSession();
    for (const [name, value] of Object.entries(attributes)) session.setAttribute(name, value);
    await expect(repository.save(session)).resolves.toBe('saved');
    return session;
  }

  async function load(id: string): Promise<TrackedSession> {
    const session = await repository.findById(id);
    expect(session).not.toBeNull();
    return session as TrackedSession;
  }

  const types = () => events.map(({ type }) => type);

  describe('create', () => {
    it('stores a session that can be loaded, under the times of the clock', async () => {
      const session = await stored({ cart: ['apple'] });
      expect(session.creationTime).toBe(clock.now());
      clock.advance(10_000);
      const loaded = await load(session.id);
      expect(loaded).toMatchObject({
        id: session.id,
        isNew: false,
        creationTime: session.creationTime,
        lastAccessedTime: session.creationTime,
        maxInactiveInterval: 60,
        idleTime: 10_000,
        attributeNames: ['cart'],
      });
      expect(events).toMatchObject([
        { id: `created:${session.id}`, sessionId: session.id, at: session.creationTime, dataLost: false },
      ]);
      expect(events[0]).toBeInstanceOf(SessionCreatedEvent);
      expect(events[0]!.session.getAttribute('cart')).toEqual(['apple']);
    });

    it('shares no object with anybody', async () => {
      const cart = ['apple'];
      const session = await stored({ cart });
      cart.push('not saved');
      const [one, other] = [await load(session.id), await load(session.id)];
      one.getAttribute<string[]>('cart')!.push('not saved either');
      events[0]!.session.getAttribute<string[]>('cart')!.push('nor this');
      expect(other.getAttribute('cart')).toEqual(['apple']);
    });

    it('refuses an id that exists', async () => {
      const { id } = await stored();
      const timeouts = { maxInactiveInterval: 60, absoluteTimeout: -1 };
      const create = { kind: 'create', id, presentedIds: [], ...timeouts, indexes: new Map() } as const;
      const attributes = new Map([['a', '2']]);
      await expect(repository.write({ ...create, attributes })).resolves.toEqual({ outcome: 'collision' });
      expect((await load(id)).getAttribute('a')).toBe(1);
    });

    it('refuses a late request of a token that has just been rotated, and not an unknown one', async () => {
      const session = await stored();
      const oldId = session.id;
      session.changeSessionId();
      await repository.save(session);
      const late = repository.createSession([NOBODY, oldId]);
      late.setAttribute('b', 1);
      await expect(repository.save(late)).resolves.toBe('gone');
      await expect(repository.findById(late.id)).resolves.toBeNull();

      const unknown = repository.createSession([NOBODY]);
      unknown.setAttribute('b', 1);
      await expect(repository.save(unknown)).resolves.toBe('saved');
      clock.advance(60_000);
      const afterwards = repository.createSession([NOBODY, oldId]);
      afterwards.setAttribute('b', 1);
      await expect(repository.save(afterwards)).resolves.toBe('saved');
    });
  });

  describe('findById', () => {
    it.each([NOBODY, '', 'x', `${'a'.repeat(42)}*`, '__proto__'])('finds nothing for %p', async (id) => {
      await expect(repository.findById(id)).resolves.toBeNull();
    });

    it('is no access', async () => {
      const { id } = await stored();
      clock.advance(59_999);
      await load(id);
      clock.advance(1);
      await expect(repository.findById(id)).resolves.toBeNull();
    });
  });

  describe('save', () => {
    it('writes only what changed: two requests at once that change different attributes', async () => {
      const { id } = await stored({ a: 0, b: 0, both: 0 });
      for (let round = 1; round <= 200; round++) {
        const [one, other] = [await load(id), await load(id)];
        one.setAttribute('a', round);
        one.removeAttribute(`other ${round - 1}`);
        other.setAttribute('b', round);
        other.setAttribute(`other ${round}`, round);
        await Promise.all([repository.save(one), repository.save(other)]);
        const session = await load(id);
        expect([session.getAttribute('a'), session.getAttribute('b')]).toEqual([round, round]);
        expect(session.getAttribute(`other ${round}`)).toBe(round);
      }
      expect((await load(id)).attributeNames.sort()).toEqual(['a', 'b', 'both', 'other 200']);
    });

    it('renews, and never takes the time of the last access back', async () => {
      const session = await stored();
      clock.advance(50_000);
      const loaded = await load(session.id);
      loaded.setAttribute('a', 2);
      await repository.save(loaded);
      const renewedAt = clock.now();
      clock.advance(-5000);
      const late = await load(session.id);
      late.setAttribute('a', 3);
      await repository.save(late);
      expect((await load(session.id)).lastAccessedTime).toBe(renewedAt);
      clock.advance(59_999);
      await load(session.id);
    });

    it('writes nothing of a request without changes', async () => {
      const session = await stored();
      clock.advance(50_000);
      await repository.save(await load(session.id));
      clock.advance(10_000);
      await expect(repository.findById(session.id)).resolves.toBeNull();
    });

    it('does not bring back a session that was deleted, or has expired, while a slow request held it', async () => {
      for (const end of [(id: string) => repository.deleteById(id), () => Promise.resolve(clock.advance(60_000))]) {
        const { id } = await stored();
        const slow = await load(id);
        const rotating = await load(id);
        const updating = await load(id);
        await end(id);
        slow.setAttribute('a', 2);
        await expect(repository.save(slow)).resolves.toBe('gone');
        rotating.changeSessionId();
        await expect(repository.save(rotating)).resolves.toBe('gone');
        await expect(updating.updateAttribute('a', () => 3)).resolves.toBeUndefined();
        await expect(repository.touch(slow)).resolves.toBe('gone');
        await expect(repository.findById(id)).resolves.toBeNull();
        await expect(repository.findById(rotating.id)).resolves.toBeNull();
        expect(rotating.tokenToSend).toBeUndefined();
      }
      await repository.runOnce();
      expect(types()).toEqual(['created', 'deleted', 'created', 'expired']);
    });

    it('changes the interval, also to never', async () => {
      const session = await stored();
      session.maxInactiveInterval = 120;
      await repository.save(session);
      clock.advance(119_999);
      const loaded = await load(session.id);
      expect(loaded).toMatchObject({ maxInactiveInterval: 120, idleTime: 119_999 });
      loaded.maxInactiveInterval = -1;
      await repository.save(loaded);
      clock.advance(1e12);
      expect(await load(session.id)).toMatchObject({ maxInactiveInterval: -1, idleTime: undefined });
      await expect(repository.runOnce()).resolves.toEqual({ expired: 0 });
    });

    it('ends the session at its absolute timeout, however much it is used', async () => {
      const limited = new MapSessionRepository({ timeout: 60, absoluteTimeout: 90, clock });
      const session = limited.createSession();
      expect(session.absoluteTimeout).toBe(90);
      session.setAttribute('a', 1);
      await session.save();
      clock.advance(50_000);
      await expect(limited.touch(session)).resolves.toBe('touched');
      expect(await limited.findById(session.id)).toMatchObject({ absoluteTimeout: 90, idleTime: 0 });
      clock.advance(39_999);
      await expect(limited.findById(session.id)).resolves.not.toBeNull();
      clock.advance(1);
      await expect(limited.findById(session.id)).resolves.toBeNull();
      await expect(limited.runOnce()).resolves.toEqual({ expired: 1 });
    });

    it('counts an absolute timeout that is set later from the creation: one that is over ends the session', async () => {
      const [later, over] = [await stored(), await stored()];
      clock.advance(30_000);
      later.absoluteTimeout = 31;
      over.absoluteTimeout = 30;
      await later.save();
      await expect(over.save()).resolves.toBe('saved');
      await expect(repository.findById(over.id)).resolves.toBeNull();
      expect(types()).toEqual(['created', 'created', 'expired']);
      clock.advance(999);
      await load(later.id);
      clock.advance(1);
      await expect(repository.findById(later.id)).resolves.toBeNull();
      await repository.runOnce();
      expect(types()).toEqual(['created', 'created', 'expired', 'expired']);
    });

    it('ends the session when its interval is set to 0', async () => {
      const session = await stored();
      session.setAttribute('last', 'words');
      session.maxInactiveInterval = 0;
      await expect(repository.save(session)).resolves.toBe('saved');
      await expect(repository.findById(session.id)).resolves.toBeNull();
      expect(types()).toEqual(['created', 'deleted']);
      expect(events[1]!.session.getAttribute('last')).toBe('words');
      await expect(repository.deleteById(session.id)).resolves.toBe(false);
    });
  });

  describe('updateAttribute', () => {
    it('loses no increment of many requests at once', async () => {
      const { id } = await stored({ n: 0 });
      for (let round = 0; round < 20; round++) {
        const sessions = await Promise.all(Array.from({ length: 10 }, () => load(id)));
        await Promise.all(sessions.map((session) => session.updateAttribute<number>('n', (n = 0) => n + 1)));
      }
      expect((await load(id)).getAttribute('n')).toBe(200);
    });

    it('tells the text there is on conflict, and writes nothing', async () => {
      const { id } = await stored({ n: 1 });
      const update = { kind: 'update', id, attributes: new Map([['n', '3']]), indexes: new Map() } as const;
      await expect(repository.write({ ...update, expected: { name: 'n', text: '2' } })).resolves.toEqual({
        outcome: 'conflict',
        current: '1',
      });
      await expect(repository.write({ ...update, expected: { name: 'm', text: '2' } })).resolves.toEqual({
        outcome: 'conflict',
        current: undefined,
      });
      await expect(repository.write({ ...update, expected: { name: 'm', text: undefined } })).resolves.toEqual({
        outcome: 'saved',
      });
    });
  });

  describe('changeSessionId', () => {
    it('moves everything to the new id at once, and says so', async () => {
      const session = await stored({ a: 1 });
      const oldId = session.id;
      const newId = session.changeSessionId();
      session.setAttribute('user', 'ann');
      await repository.save(session);
      await expect(repository.findById(oldId)).resolves.toBeNull();
      expect((await load(newId)).attributeNames).toEqual(['a', 'user']);
      expect(events[1]).toBeInstanceOf(SessionIdChangedEvent);
      expect(events[1]).toMatchObject({
        id: `id-changed:${newId}`,
        sessionId: newId,
        previousSessionId: oldId,
        session: { id: newId },
      });
    });

    it('lets the late save of a request that had loaded the old id through, with its attributes only', async () => {
      const session = await stored({ n: 0 });
      const late = await load(session.id);
      const updating = await load(session.id);
      session.changeSessionId();
      await repository.save(session);
      session.changeSessionId();
      await repository.save(session);

      late.setAttribute('late', true);
      await expect(repository.save(late)).resolves.toBe('saved');
      await expect(updating.updateAttribute<number>('n', (n = 0) => n + 1)).resolves.toBe(1);
      await expect(repository.touch(late)).resolves.toBe('moved');
      expect((await load(session.id)).attributeNames).toEqual(['n', 'late']);
      expect(late.tokenToSend).toBeUndefined();
    });

    it.each<[string, (session: Session) => void]>([
      ['a new id', (session) => void session.changeSessionId()],
      ['a principal', (session) => (session.principalName = 'mallory')],
      ['no principal', (session) => (session.principalName = undefined)],
      ['an interval', (session) => (session.maxInactiveInterval = -1)],
      ['an absolute timeout', (session) => (session.absoluteTimeout = -1)],
    ])('answers gone to a request that was held open across it with %s', async (_, change) => {
      const victim = await stored();
      victim.principalName = 'guest';
      victim.absoluteTimeout = 600;
      await repository.save(victim);
      const held = await load(victim.id);
      victim.changeSessionId();
      victim.principalName = 'ann';
      await repository.save(victim);

      held.setAttribute('a', 2);
      change(held);
      await expect(repository.save(held)).resolves.toBe('gone');
      expect(held.tokenToSend).toBeUndefined();
      await expect(repository.findById(held.id)).resolves.toBeNull();
      const session = await load(victim.id);
      expect(session).toMatchObject({ principalName: 'ann', maxInactiveInterval: 60, absoluteTimeout: 600 });
      expect(session.getAttribute('a')).toBe(1);
    });

    it('lets a late request end the session, which it could read', async () => {
      for (const end of [
        (late: Session) => {
          late.invalidate();
          return repository.save(late);
        },
        (late: Session) => {
          late.maxInactiveInterval = 0;
          return repository.save(late);
        },
        (late: Session) => repository.deleteById(late.id),
      ]) {
        const session = await stored();
        const late = await load(session.id);
        session.changeSessionId();
        await repository.save(session);
        await end(late);
        await expect(repository.findById(session.id)).resolves.toBeNull();
        expect(events.at(-1)).toMatchObject({ type: 'deleted', sessionId: session.id });
      }
    });

    it('forwards for a minute and no longer', async () => {
      const session = await stored();
      session.maxInactiveInterval = 600;
      await repository.save(session);
      const late = await load(session.id);
      const tooLate = await load(session.id);
      session.changeSessionId();
      await repository.save(session);
      clock.advance(59_999);
      late.setAttribute('late', 1);
      await expect(repository.save(late)).resolves.toBe('saved');
      clock.advance(1);
      await repository.runOnce();
      tooLate.setAttribute('late', 2);
      await expect(repository.save(tooLate)).resolves.toBe('gone');
    });

    it('is done once when it is sent twice, and not at all under an id that is taken', async () => {
      const session = await stored();
      const change = { kind: 'update', id: session.id, newId: NOBODY, ...NO_CHANGES } as const;
      await expect(repository.write(change)).resolves.toEqual({ outcome: 'saved' });
      await expect(repository.write(change)).resolves.toEqual({ outcome: 'saved' });
      expect(types()).toEqual(['created', 'id-changed']);
      const other = await stored();
      await expect(repository.write({ ...change, id: other.id })).resolves.toEqual({ outcome: 'collision' });
      await expect(repository.write({ ...change, id: other.id, newId: session.id })).resolves.toEqual({
        outcome: 'collision',
      });
      await load(other.id);
    });

    it('of two requests at once succeeds in one', async () => {
      const { id } = await stored();
      const [one, other] = [await load(id), await load(id)];
      one.changeSessionId();
      other.changeSessionId();
      expect(await Promise.all([repository.save(one), repository.save(other)])).toEqual(['saved', 'gone']);
      expect([one.tokenToSend, other.tokenToSend]).toEqual([expect.anything(), undefined]);
    });
  });

  describe('touch', () => {
    it('renews, also a session whose change of id is not stored yet', async () => {
      const session = await stored();
      clock.advance(50_000);
      session.changeSessionId();
      await expect(repository.touch(session)).resolves.toBe('touched');
      clock.advance(50_000);
      await expect(repository.save(session)).resolves.toBe('saved');
      expect(await load(session.id)).toMatchObject({ lastAccessedTime: clock.now(), idleTime: 0 });
    });

    it('is nothing for a session that is not stored', async () => {
      await expect(repository.touch(repository.createSession())).resolves.toBe('gone');
    });
  });

  describe('deleteById', () => {
    it('ends a session once, with its data', async () => {
      const { id } = await stored({ cart: ['apple'] });
      const answers = await Promise.all([repository.deleteById(id), repository.deleteById(id)]);
      expect(answers).toEqual([true, false]);
      expect(types()).toEqual(['created', 'deleted']);
      expect(events[1]).toBeInstanceOf(SessionDeletedEvent);
      expect(events[1]!.session.getAttribute('cart')).toEqual(['apple']);
      await expect(repository.deleteById('__proto__')).resolves.toBe(false);
    });
  });

  describe('expiry', () => {
    it('is at once for reads, and recorded once by the sweep, with the data', async () => {
      const session = await stored({ cart: ['apple'] });
      session.principalName = 'ann';
      await repository.save(session);
      await stored();
      clock.advance(59_999);
      await expect(repository.runOnce()).resolves.toEqual({ expired: 0 });
      await repository.touch(await load(session.id));
      clock.advance(1);
      await expect(repository.runOnce()).resolves.toEqual({ expired: 1 });
      clock.advance(59_999);
      await expect(repository.findById(session.id)).resolves.toBeNull();
      await expect(repository.findByPrincipalName('ann')).resolves.toEqual([]);
      await expect(repository.deleteById(session.id)).resolves.toBe(false);
      const sweeps = await Promise.all([repository.runOnce(), repository.runOnce()]);
      expect(sweeps).toEqual([{ expired: 1 }, { expired: 0 }]);
      expect(types()).toEqual(['created', 'created', 'expired', 'expired']);
      const event = events[3]!;
      expect(event).toBeInstanceOf(SessionExpiredEvent);
      expect(event).toMatchObject({ sessionId: session.id, principalName: 'ann', at: clock.now(), dataLost: false });
      expect(event.session.getAttribute('cart')).toEqual(['apple']);
    });
  });

  describe('findByPrincipalName', () => {
    it('finds the live sessions of a principal', async () => {
      const [one, two, other] = [await stored(), await stored(), await stored()];
      for (const session of [one, two]) session.principalName = 'ann';
      other.principalName = 'bob';
      await Promise.all([one, two, other].map((session) => repository.save(session)));
      const ids = async (name: string) => (await repository.findByPrincipalName(name)).map(({ id }) => id).sort();
      expect(await ids('ann')).toEqual([one.id, two.id].sort());
      expect(await ids('carol')).toEqual([]);
      two.principalName = 'bob';
      two.changeSessionId();
      await repository.save(two);
      expect(await ids('bob')).toEqual([two.id, other.id].sort());
      await expect(repository.findByIndex(PRINCIPAL_NAME_INDEX_NAME, 'ann')).resolves.toHaveLength(1);
      await expect(repository.findByIndex('another', 'ann')).resolves.toEqual([]);
    });
  });

  it('neither waits for the delivery of events nor fails with it', async () => {
    const failing = new MapSessionRepository({
      clock,
      dispatcher: { dispatch: () => Promise.reject(new Error('no')), broadcast: async () => {} },
    });
    const session = failing.createSession();
    session.setAttribute('a', 1);
    await expect(failing.save(session)).resolves.toBe('saved');
    await expect(new MapSessionRepository().deleteById(session.id)).resolves.toBe(false);
  });
});
