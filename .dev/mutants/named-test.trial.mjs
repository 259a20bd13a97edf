import { check } from '../checks.mjs';
import { findSpecs, nearestNames } from './places.mjs';
import { cannotRun, inCopies, tryOut } from './trial.mjs';

/** Whether the test that is written down with each mutant fails in it, and passes without it: a check for each. */
export async function failByName(mutants, copies) {
  // A copy that has run a spec is fast to run it again.
  const bySpec = [...mutants].sort((one, other) => one.killedBy.spec.localeCompare(other.killedBy.spec));
  const unmutated = await testUnmutated(bySpec, copies);
  const verdicts = await tryOut(bySpec, copies, async ({ killedBy: { test } }, copy) => {
    const named = testsOf(test, unmutated);
    if (named.length === 0) return { isKilled: false, says: `THERE IS NO TEST "${test}"` };
    const failing = named.filter(({ status }) => status !== 'passed');
    if (failing.length > 0)
      return { isKilled: false, says: `FAILS WITHOUT IT: "${test}"`, output: messagesOf(failing) };
    const { tests, output } = await copy.test([...new Set(named.map(({ file }) => file))], [test]);
    const failed = testsOf(test, tests).filter(({ status }) => status === 'failed');
    if (failed.length === 0) return { isKilled: false, says: `NOT NOTICED by "${test}"`, output };
    if (cannotRun(failed)) return { isKilled: false, says: 'CANNOT RUN', output };
    return { isKilled: true, says: `killed by "${test}"` };
  });
  return verdicts.map(({ isKilled, says }) => check(says, isKilled));
}

/** The results of the named tests without a mistake, each with the file that has it. */
async function testUnmutated(mutants, copies) {
  const specs = findSpecs();
  const names = [...new Set(mutants.map(({ killedBy }) => killedBy.spec))];
  const missing = names.filter((name) => !specs.has(name));
  const problems = missing.map((name) => `There is no ${name}. The nearest: ${nearestNames(name, specs).join(', ')}`);
  if (problems.length > 0) throw new Error(problems.join('\n'));
  const runs = await inCopies(names, copies, (name, copy) => {
    const titles = mutants.filter(({ killedBy }) => killedBy.spec === name).map(({ killedBy }) => killedBy.test);
    return copy.test(specs.get(name), [...new Set(titles)]);
  });
  return runs.flatMap(({ tests }) => tests).filter(({ status }) => status !== 'pending');
}

/** A test may run several times: for each platform, or number of partitions. */
function testsOf(name, tests) {
  return tests.filter(({ fullName }) => fullName === name || fullName.endsWith(` ${name}`));
}

function messagesOf(tests) {
  return tests.flatMap(({ failureMessages }) => failureMessages).join('\n');
}
