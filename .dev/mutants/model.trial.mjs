import { check } from '../checks.mjs';
import { cannotRun, tryOut } from './trial.mjs';

const FILE = 'packages/session-redis/test/model/concurrent-requests.spec.ts';
const TEST = 'are as in the model, in whatever order requests, the clock and the cleanup take their steps';
const SEQUENCES = 1000;
const LEAST = 8;

/** After how many sequences, drawn at random, each mistake of a store is found: a check whether enough of them are. */
export async function findByModel(mutants, copies) {
  const ofStores = mutants.filter(({ store }) => store !== undefined);
  const verdicts = await tryOut(ofStores, copies, async ({ store }, copy) => {
    const env = { RUNS: `${SEQUENCES}` };
    const { tests, output } = await copy.test([FILE], [`sessions in ${store} ${TEST}`], { env, timeout: 600_000 });
    const failed = tests.filter(({ status }) => status === 'failed');
    if (cannotRun(failed)) return { isFound: false, says: 'CANNOT RUN', output };
    const [, count] = /Sequence (\d+)/.exec(failed[0]?.failureMessages[0] ?? '') ?? [];
    if (count) return { isFound: true, says: `found after ${count} sequences` };
    const hasPassed = tests.some(({ status }) => status === 'passed');
    return hasPassed
      ? { isFound: false, says: `not found in ${SEQUENCES} sequences` }
      : { isFound: false, says: 'FAILS OTHERWISE', output };
  });
  const found = verdicts.filter(({ isFound }) => isFound).length;
  return [check(`${found} of ${verdicts.length} mistakes are found, ${LEAST} have to be`, found >= LEAST)];
}
