import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionExpiredEvent } from '@nest-session/core';
import {
  type RedisSessionModuleOptions,
  RedisSessionRepository,
  SessionExpirationSweeper,
  type SessionTimer,
} from '@nest-session/redis';
import { eventually } from '@nest-session/testing';
import { EventInstance } from '../../../session-redis/test/support/event-instance.fixture.js';
import { type RecordedStore, recordedExpirations } from '../../../session-redis/test/support/key-event.fixture.js';
import type { Store } from '../../../session-redis/test/support/store.fixture.js';

/** No tick of the cleanup job, and no key event: only a timer notices that time is up, and what a test starts. */
export const ONLY_TIMERS = { notifications: 'off', cleanup: { cron: '0 0 0 29 2 *' } } as const;

/** An instance of an application with a timer, and the ends that it has handled. */
export class TimedApplication {
  readonly handled: SessionExpiredEvent[] = [];
  #instance!: EventInstance;

  static on(store: Store, timer: SessionTimer): Promise<TimedApplication> {
    return TimedApplication.start({ url: store.server.url, partitions: store.partitions.all.length }, timer);
  }

  static async start(address: RedisSessionModuleOptions, timer: SessionTimer): Promise<TimedApplication> {
    const application = new TimedApplication();
    @Injectable()
    class Handlers {
      @OnSessionEvent(SessionExpiredEvent)
      record(event: SessionExpiredEvent) {
        application.handled.push(event);
      }
    }
    const redis = { ...address, ...ONLY_TIMERS, expirations: timer };
    application.#instance = await EventInstance.start({ redis, providers: [Handlers] });
    return application;
  }

  /** Creates sessions with this timeout in seconds, whose ids it returns. */
  create(count: number, timeout: number): Promise<string[]> {
    const repository = this.#instance.module.get(RedisSessionRepository, { strict: false });
    const created = Array.from({ length: count }, async () => {
      const session = repository.createSession();
      session.setAttribute('timeout', timeout);
      session.maxInactiveInterval = timeout;
      await session.save();
      return session.id;
    });
    return Promise.all(created);
  }

  /** Claims what the timer has missed, as the cleanup job does. */
  async sweep(): Promise<number> {
    const sweeper = this.#instance.module.get(SessionExpirationSweeper, { strict: false });
    return (await sweeper.runOnce({ ahead: 120_000 })).claimed;
  }

  stop(): Promise<void> {
    return this.#instance.stop();
  }
}

/**
 * Resolves when the ends of all these sessions are handled; expects that of each once, with its data, and none early.
 */
export async function untilEnded(
  store: RecordedStore,
  applications: readonly TimedApplication[],
  ids: readonly string[],
  patience = 60_000,
): Promise<void> {
  const all = () => applications.flatMap(({ handled }) => handled);
  await eventually(
    () => {
      const handled = new Set(all().map(({ sessionId }) => sessionId));
      expect(ids.filter((id) => !handled.has(id))).toEqual([]);
    },
    { timeout: patience },
  );
  const recorded = await recordedExpirations(store);
  const waited = new Set(ids);
  const events = all().filter(({ sessionId }) => waited.has(sessionId));
  expect(events).toHaveLength(ids.length);
  for (const event of events) {
    // What was handled may be trimmed, or have gone with its partition.
    expect(recorded.get(event.sessionId) ?? 1).toBe(1);
    // The timeout of an ended session is 0.
    const timeout = event.session.getRequiredAttribute<number>('timeout');
    expect(event.at).toBeGreaterThanOrEqual(event.session.lastAccessedTime + timeout * 1000);
  }
}
