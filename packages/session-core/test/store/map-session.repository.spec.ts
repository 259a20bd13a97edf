import { ManualClock } from '@nest-session/testing';
import { registerChecks, sessionRepositoryContract } from '@nest-session/testing/contracts';
import { MapSessionRepository, type SessionEvent } from '../../src/index.js';

const checks = sessionRepositoryContract({
  offers: ['indexes', 'events', 'revocations'],
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
