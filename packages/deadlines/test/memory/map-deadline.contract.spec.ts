import { setTimeout as delay } from 'node:timers/promises';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { deadlineContract } from '@nest-session/test-infrastructure/deadlines';
import { TestClock, TestDeadlineModule } from '@nest-session/testing';
import { registerChecks } from '@nest-session/testing/contracts';
import { MapDeadlineModule } from '../../src/deadlines/map-deadline.module.js';

LeakGuard.install();

const LONGEST_BACK_OFF = 300_000;

describe('the contract of deadlines', () => {
  describe('in memory, by a clock that the test advances', () => {
    const checks = deadlineContract({
      open: () => ({
        module: () => TestDeadlineModule.forRoot(),
        pass: (milliseconds, app) => app.get(TestClock).advance(`${milliseconds}ms`),
        now: (app) => app.get(TestClock).now(),
        close: async () => undefined,
      }),
      offers: [],
      longestBackOff: LONGEST_BACK_OFF,
    });
    registerChecks(checks, { describe, it });
  });

  describe('in memory, by the clock of the process', () => {
    const checks = deadlineContract({
      open: () => ({
        module: () => MapDeadlineModule,
        pass: (milliseconds) => delay(milliseconds),
        now: () => Date.now(),
        close: async () => undefined,
      }),
      offers: [],
      longestBackOff: 1000,
    });
    // In these, all attempts of an event fail: that takes more than eight minutes.
    const tooLong = ['dead letters'];
    // At the same time: each has a store of its own, and waits for the clock.
    registerChecks(
      checks.filter(({ group = '' }) => !tooLong.includes(group)),
      { describe, it: it.concurrent },
    );
  });
});
