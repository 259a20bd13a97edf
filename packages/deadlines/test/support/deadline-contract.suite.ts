import { setTimeout as delay } from 'node:timers/promises';
import { deadlineContract } from '@nest-session/test-infrastructure/deadlines';
import { registerChecks } from '@nest-session/testing/contracts';
import { RedisDeadlineModule } from '../../src/redis/redis-deadline.module.js';
import type { RedisDeadlineModuleOptions } from '../../src/redis/redis-deadline.options.js';

/** The third attempt is two seconds after the second one. */
const ATTEMPTS = 3;
const LONGEST_BACK_OFF = 2000;

/** Where the applications of one check find an empty Redis. */
export interface DeadlineServer {
  readonly address: RedisDeadlineModuleOptions;
  /** Called when they are closed. */
  release(): Promise<unknown>;
}

/**
 * The contract of deadlines, for applications with these options. `take`: returns a server that no other check has,
 * because several run at the same time and wait for its clock. `without`: groups of checks that are left out.
 */
export function describeDeadlineContract(
  what: string,
  take: () => Promise<DeadlineServer>,
  options: RedisDeadlineModuleOptions = {},
  without: readonly string[] = [],
): void {
  describe(`RedisDeadlineModule, ${what}`, () => {
    const checks = deadlineContract({
      open: async () => {
        const { address, release } = await take();
        return {
          module: (group = 'default') =>
            RedisDeadlineModule.forRoot({ ...address, ...options, events: { group, attempts: ATTEMPTS } }),
          pass: (milliseconds) => delay(milliseconds),
          // The server is on this machine.
          now: () => Date.now(),
          close: async () => void (await release()),
        };
      },
      offers: ['instances', 'groups'],
      longestBackOff: LONGEST_BACK_OFF,
    });
    // A failed check rejects. As an assertion of Jest it counts as one.
    const passes = (name: string, check: () => Promise<void>) =>
      it.concurrent(name, () => expect(check()).resolves.toBeUndefined());
    const chosen = checks.filter(({ group = '' }) => !without.includes(group));
    registerChecks(chosen, { describe, it: Object.assign(passes, { skip: it.skip }) });
  });
}
