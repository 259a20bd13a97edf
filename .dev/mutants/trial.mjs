// It fails whatever looks at it: nothing has noticed the mistake.
const CANNOT_RUN = /SyntaxError|ReferenceError|Error compiling script|user_script:\d+: attempt to/;

/** Does something with each item, in the first copy that is free. Resolves to the results, in no order. */
export async function inCopies(items, copies, act) {
  const waiting = [...items];
  const results = await Promise.all(
    copies.map(async (copy) => {
      const own = [];
      for (let item = waiting.shift(); item; item = waiting.shift()) own.push(await act(item, copy));
      return own;
    }),
  );
  return results.flat();
}

/** Makes each mistake in a copy, and has judged what comes of it. Says so in a line for each; resolves to the verdicts. */
export function tryOut(mutants, copies, judge) {
  return inCopies(mutants, copies, async (mutant, copy) => {
    const began = Date.now();
    const verdict = await copy.with(mutant, () => judge(mutant, copy));
    const seconds = Math.round((Date.now() - began) / 1000);
    console.log(`${mutant.mistake}: ${verdict.says}, in ${seconds} s`);
    if (verdict.output) console.log(verdict.output);
    return verdict;
  });
}

/** Whether tests have failed for another reason than that they have noticed the mistake. */
export function cannotRun(failed) {
  return failed.some(({ failureMessages }) => failureMessages.some((message) => CANNOT_RUN.test(message)));
}
