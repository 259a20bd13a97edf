import type { ContractCheck } from './contract.check.js';
import { ABSOLUTE_END } from './session-repository/absolute-end.checks.js';
import { ATTRIBUTE_UPDATE } from './session-repository/attribute-update.checks.js';
import { SESSION_BOUNDS } from './session-repository/bounds.checks.js';
import type { CheckGroup } from './session-repository/check.group.js';
import type { SessionRepositoryContractOptions } from './session-repository/contract.store.js';
import { CREATION } from './session-repository/creation.checks.js';
import { DELETION } from './session-repository/deletion.checks.js';
import { EVENTS } from './session-repository/event.checks.js';
import { INDEX } from './session-repository/index.checks.js';
import { INDEXED_ATTRIBUTES } from './session-repository/indexed-attribute.checks.js';
import { INTERVALS } from './session-repository/interval.checks.js';
import { LIMIT_EVENTS, LIMITS } from './session-repository/limit.checks.js';
import { LISTING } from './session-repository/listing.checks.js';
import { LOADING } from './session-repository/loading.checks.js';
import { MARKS } from './session-repository/mark.checks.js';
import { NAMES_AND_VALUES } from './session-repository/names-and-values.checks.js';
import { OUTAGES } from './session-repository/outage.checks.js';
import { RACES, RACES_OF_NODES } from './session-repository/race.checks.js';
import { REVOCATION } from './session-repository/revocation.checks.js';
import { ROTATION } from './session-repository/rotation.checks.js';
import { SAVING } from './session-repository/saving.checks.js';
import { SIGN_IN } from './session-repository/sign-in.checks.js';
import { TOUCHING } from './session-repository/touching.checks.js';
import { ContractContext } from './session-repository/contract.context.js';

const GROUPS: readonly CheckGroup[] = [
  CREATION,
  LOADING,
  SAVING,
  DELETION,
  ROTATION,
  SIGN_IN,
  TOUCHING,
  INTERVALS,
  ABSOLUTE_END,
  ATTRIBUTE_UPDATE,
  SESSION_BOUNDS,
  NAMES_AND_VALUES,
  INDEX,
  INDEXED_ATTRIBUTES,
  LISTING,
  REVOCATION,
  LIMITS,
  EVENTS,
  LIMIT_EVENTS,
  MARKS,
  OUTAGES,
  RACES,
  RACES_OF_NODES,
];

/**
 * Returns the checks that every `SessionRepository` must pass. Checks of parts that a store does not offer are included
 * and marked as skipped, so that the test run lists them.
 */
export function sessionRepositoryContract(options: SessionRepositoryContractOptions): readonly ContractCheck[] {
  return GROUPS.flatMap(({ name: group, needs, checks }) => {
    const isOffered = needs === undefined || options.offers.includes(needs);
    return Object.entries(checks).map(([name, check]) => ({
      name,
      group,
      ...(isOffered ? {} : { skipped: `${needs} are not offered` }),
      async check() {
        const trial = await ContractContext.open(options);
        try {
          await check(trial);
        } finally {
          await trial.close();
        }
      },
    }));
  });
}
