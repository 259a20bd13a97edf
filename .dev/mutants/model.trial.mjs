import { check } from '../checks.mjs';
import { findSpecs } from './places.mjs';
import { cannotRun, tryOut } from './trial.mjs';

const SPEC = 'concurrent-requests.spec.ts';
const TEST = 'equal the model for any interleaving of requests, clock and sweeper';
const SEQUENCES = 1000;
const FOUND_AT_LEAST = 8;

/**
 * After how many sequences of requests, drawn at random, each mistake of a store is found. The checks: whether enough of
 * each store are, and nothing where there is no mistake.
 */
export async function findByModel(mutants, copies) {
  const stores = [...new Set(mutants.flatMap(({ store }) => store ?? []))];
  const checks = [];
  for (const store of stores) {
    const { says, hasPassed, output } = await holdToModel(store, copies[0]);
    console.log(`Without a mistake in ${store}: ${says}`);
    if (!hasPassed) console.log(output);
    checks.push(check(`without a mistake in ${store}: ${says}`, hasPassed));
    const verdicts = await tryOut(within(store, mutants), copies, (_, copy) => holdToModel(store, copy));
    const found = verdicts.filter(({ isFound }) => isFound).length;
    const least = Math.min(FOUND_AT_LEAST, verdicts.length);
    const sum = `${found} of ${verdicts.length} mistakes in ${store} are found, ${least} have to be`;
    console.log(sum);
    checks.push(check(sum, found >= least));
  }
  return checks;
}

async function holdToModel(store, copy) {
  const files = findSpecs().get(SPEC) ?? [];
  const { tests, output } = await copy.test(files, [`sessions in ${store} ${TEST}`], { RUNS: `${SEQUENCES}` });
  const failed = tests.filter(({ status }) => status === 'failed');
  const hasPassed = failed.length === 0 && tests.some(({ status }) => status === 'passed');
  const [, count] = /Sequence (\d+)/.exec(failed[0]?.failureMessages[0] ?? '') ?? [];
  if (count && !cannotRun(failed))
    return { isFound: true, says: `found after ${count} sequences`, output: failed[0].failureMessages[0] };
  if (hasPassed) return { hasPassed, says: `nothing found in ${SEQUENCES} sequences` };
  return { says: cannotRun(failed) ? 'CANNOT RUN' : 'FAILS OTHERWISE', output };
}

/** Those that a sequence can get to: the others say why none does. */
function within(store, mutants) {
  return mutants.filter((mutant) => mutant.store === store && mutant.beyondModel === undefined);
}
