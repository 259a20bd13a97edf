import { ManualClock } from '@nest-session/testing';
import { registerChecks, sessionRepositoryContract } from '@nest-session/testing/contracts';
import { MapSessionRepository, type SessionEvent } from '../../src/index.js';
import { storePrimitivesOf } from '../../src/internal.js';

const checks = sessionRepositoryContract({
  offers: ['indexes', 'events', 'revocations', 'marks'],
  slack: 0,
  open(options) {
    const clock = new ManualClock();
    const events: SessionEvent[] = [];
    const dispatcher = { dispatch: async (event: SessionEvent) => void events.push(event), broadcast: async () => {} };
    const repository = new MapSessionRepository({ ...options, clock, dispatcher });
    return {
      repository,
      advance: (milliseconds) => clock.advance(milliseconds),
      reportExpired: () => repository.endExpired(),
      events: () => events,
    };
  },
});

describe('MapSessionRepository', () => {
  registerChecks(checks, { describe, it });

  it('returns how many sessions have expired', async () => {
    const clock = new ManualClock();
    const repository = new MapSessionRepository({ timeout: 60, clock });
    for (let i = 0; i < 3; i++) {
      const session = repository.createSession();
      session.setAttribute('a', 1);
      await session.save();
    }
    await expect(repository.endExpired()).resolves.toEqual({ expired: 0 });
    clock.advance(60_000);
    const sweeps = await Promise.all([repository.endExpired(), repository.endExpired()]);
    expect(sweeps).toEqual([{ expired: 3 }, { expired: 0 }]);
  });

  it('ends the session that signed in first, also while the clock stands still', async () => {
    const maxSessions = { perPrincipal: 2, whenReached: 'end-oldest' } as const;
    const repository = new MapSessionRepository({ clock: new ManualClock(), maxSessions });
    const signIn = async (session = repository.createSession()) => {
      session.signIn('ann');
      await session.save();
      return session;
    };
    const live = async () => (await repository.findByPrincipalName('ann')).map(({ id }) => id).toSorted();
    const [first, second] = [await signIn(), await signIn()];
    await signIn(first);
    const third = await signIn();
    expect(await live()).toEqual([first.id, third.id].toSorted());
    await expect(repository.findById(second.id)).resolves.toBeNull();
    third.changeSessionId();
    await third.save();
    const fourth = await signIn();
    expect(await live()).toEqual([third.id, fourth.id].toSorted());
  });

  it('keeps nothing of an id that was replaced a minute ago, each time', async () => {
    const clock = new ManualClock();
    const repository = new MapSessionRepository({ timeout: -1, clock });
    const session = repository.createSession();
    session.setAttribute('a', 1);
    await session.save();
    const times = { maxInactiveInterval: -1, absoluteTimeout: -1 };
    const nothing = { presentedIds: [], attributes: new Map(), indexes: new Map() };
    for (let rotation = 0; rotation < 3; rotation++) {
      const { id } = session;
      session.changeSessionId();
      await session.save();
      const create = async () => {
        const { outcome } = await storePrimitivesOf(repository).write({ kind: 'create', id, ...times, ...nothing });
        return outcome;
      };
      expect(await create()).toBe('collision');
      clock.advance(60_000);
      await repository.endExpired();
      expect(await create()).toBe('created');
    }
  });

  it('neither waits for the delivery of events nor fails with it', async () => {
    const repository = new MapSessionRepository({
      dispatcher: { dispatch: () => Promise.reject(new Error('no')), broadcast: () => new Promise(() => {}) },
    });
    const session = repository.createSession();
    session.setAttribute('a', 1);
    await expect(repository.save(session)).resolves.toBe('saved');
    await expect(new MapSessionRepository().deleteById(session.id)).resolves.toBe(false);
  });
});
