import type { ContractCheck } from '@nest-session/testing/contracts';
import { BOUNDS } from './bound.checks.js';
import { CANCELLING, RESCHEDULING } from './changing.checks.js';
import { DATA, KEY_TEXTS } from './content.checks.js';
import type { DeadlineCheckGroup } from './deadline-check.group.js';
import type { DeadlineContractOptions } from './deadline-store-under-test.js';
import { DeadlineTrial } from './deadline-trial.js';
import { DEAD_LETTERS, RETRIES } from './failure.checks.js';
import { BROADCASTS, FIRING } from './firing.checks.js';
import { GROUP, GROUPS, INSTANCES } from './group.checks.js';
import { LISTING } from './listing.checks.js';
import { RACES } from './race.checks.js';
import { SCHEDULING } from './scheduling.checks.js';

const GROUPS_OF_CHECKS: readonly DeadlineCheckGroup[] = [
  SCHEDULING,
  RESCHEDULING,
  CANCELLING,
  KEY_TEXTS,
  DATA,
  BOUNDS,
  LISTING,
  FIRING,
  BROADCASTS,
  RETRIES,
  DEAD_LETTERS,
  GROUP,
  INSTANCES,
  GROUPS,
  RACES,
];

/**
 * Returns the checks that every store of deadlines must pass, through the public API of applications that run. Checks
 * of parts that a store does not offer are included and marked as skipped.
 */
export function deadlineContract(options: DeadlineContractOptions): readonly ContractCheck[] {
  return GROUPS_OF_CHECKS.flatMap(({ name: group, needs, checks }) => {
    const isOffered = needs === undefined || options.offers.includes(needs);
    return Object.entries(checks).map(([name, check]) => ({
      name,
      group,
      ...(isOffered ? {} : { skipped: `${needs} are not offered` }),
      async check() {
        const trial = await DeadlineTrial.open(options);
        try {
          await check(trial);
        } finally {
          await trial.close();
        }
      },
    }));
  });
}
