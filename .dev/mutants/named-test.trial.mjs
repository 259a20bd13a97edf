import { check } from '../checks.mjs';
import { cannotRun, tryOut } from './trial.mjs';

/** Whether the test that is written down with each mutant fails in it, and passes without it: a check for each. */
export async function failByName(mutants, copies) {
  const unmutated = await testAll(mutants, copies[0]);
  const verdicts = await tryOut(mutants, copies, async ({ killedBy: { file, test } }, copy) => {
    const problem = problemOf(test, unmutated);
    if (problem) return { isKilled: false, says: `${problem} "${test}"`, output: unmutated.output };
    const { tests, output } = await copy.test([file], [test]);
    const failed = testsOf(test, tests).filter(({ status }) => status === 'failed');
    if (failed.length === 0) return { isKilled: false, says: `NOT NOTICED by "${test}"`, output };
    if (cannotRun(failed)) return { isKilled: false, says: 'CANNOT RUN', output };
    return { isKilled: true, says: `killed by "${test}"` };
  });
  return verdicts.map(({ isKilled, says }) => check(says, isKilled));
}

function testAll(mutants, copy) {
  const files = new Set(mutants.map(({ killedBy }) => killedBy.file));
  const names = new Set(mutants.map(({ killedBy }) => killedBy.test));
  return copy.test([...files], [...names], { workers: '100%' });
}

function problemOf(name, { tests }) {
  const ran = testsOf(name, tests);
  if (ran.length === 0) return 'THERE IS NO TEST';
  return ran.every(({ status }) => status === 'passed') ? undefined : 'FAILS WITHOUT IT:';
}

/** A test may run several times: for each platform, or number of partitions. */
function testsOf(name, tests) {
  return tests.filter(({ fullName }) => fullName === name || fullName.endsWith(` ${name}`));
}
