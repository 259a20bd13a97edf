import { setTimeout as delay } from 'node:timers/promises';
import { deadlineContract } from '@nest-session/test-infrastructure/deadlines';
import { registerChecks } from '@nest-session/testing/contracts';
import { RedisDeadlineModule } from '../../src/deadlines/redis-deadline.module.js';
import type { RedisDeadlineModuleOptions } from '../../src/deadlines/redis-deadline.options.js';

/** The third attempt is two seconds after the second one. */
const ATTEMPTS = 3;
const LONGEST_BACK_OFF = 2000;

/**
 * The contract of deadlines, for applications with these options. `address`: asked when Redis runs. `without`: groups of
 * checks that are left out.
 */
export function describeDeadlineContract(
  what: string,
  address: () => RedisDeadlineModuleOptions,
  options: RedisDeadlineModuleOptions = {},
  without: readonly string[] = [],
): void {
  let stores = 0;
  describe(`RedisDeadlineModule, ${what}`, () => {
    const checks = deadlineContract({
      open: () => {
        const namespace = `deadlines:${what.replaceAll(/\W/g, '-')}:${stores++}`;
        return {
          module: (group = 'default') =>
            RedisDeadlineModule.forRoot({ ...address(), ...options, namespace, events: { group, attempts: ATTEMPTS } }),
          pass: (milliseconds) => delay(milliseconds),
          // The server is on this machine.
          now: () => Date.now(),
          close: async () => undefined,
        };
      },
      offers: ['instances', 'groups'],
      longestBackOff: LONGEST_BACK_OFF,
    });
    // A failed check rejects. As an assertion of Jest it counts as one.
    const passes = (name: string, check: () => Promise<void>) =>
      it(name, () => expect(check()).resolves.toBeUndefined());
    const chosen = checks.filter(({ group = '' }) => !without.includes(group));
    registerChecks(chosen, { describe, it: Object.assign(passes, { skip: it.skip }) });
  });
}
