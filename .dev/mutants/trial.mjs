// It fails whatever looks at it: nothing has noticed the mistake.
const CANNOT_RUN = /SyntaxError|ReferenceError|Error compiling script|user_script:\d+: attempt to/;

/**
 * Makes each mistake in a copy that is free, and has judged what comes of it. Says so in a line for each; resolves to the
 * verdicts.
 */
export async function tryOut(mutants, copies, judge) {
  const waiting = [...mutants];
  const verdicts = await Promise.all(
    copies.map(async (copy) => {
      const own = [];
      for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) own.push(await judgeIn(copy, mutant, judge));
      return own;
    }),
  );
  return verdicts.flat();
}

async function judgeIn(copy, mutant, judge) {
  const began = Date.now();
  const verdict = await copy.with(mutant, () => judge(mutant, copy));
  const seconds = Math.round((Date.now() - began) / 1000);
  console.log(`${mutant.mistake}: ${verdict.says}, in ${seconds} s`);
  if (verdict.output) console.log(verdict.output);
  return verdict;
}

/** Whether tests have failed for another reason than that they have noticed the mistake. */
export function cannotRun(failed) {
  return failed.some(({ failureMessages }) => failureMessages.some((message) => CANNOT_RUN.test(message)));
}
