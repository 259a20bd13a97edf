// An application of .dev that is compiled and run outside of the repository.
import { join } from 'node:path';
import { check } from './checks.mjs';
import { root } from './processes.mjs';
import { runIn } from './temporary-folder.mjs';

const PASSED_IN_TAP = /^# Subtest: .*\nok .*\n {2}---\n(?: {2}.*\n)*/gm;

/** With our compiler, and everything else as it is installed there. */
export async function compileIn(folder) {
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  const { code, output } = await runIn(folder, process.execPath, [compiler]);
  return { output, checks: [check('the application compiles', code === 0)] };
}

/** Runs checks.js, which prints TAP, and resolves to each of its checks. */
export async function runChecksIn(folder, env) {
  const { code, output } = await runIn(folder, process.execPath, ['--test-reporter=tap', 'checks.js'], env);
  const lines = output.matchAll(/^(ok|not ok) \d+ - (.*?)( # SKIP.*)?$/gm);
  const checks = [...lines].map(([, result, name, skip]) => ({ name, result: skip ? 'skipped' : result }));
  // The reporter writes its plan last.
  const hasEnded = code !== null && /^1\.\.\d+$/m.test(output);
  return {
    output: output.replace(PASSED_IN_TAP, ''),
    checks: [...checks, check('the process ends by itself', hasEnded)],
  };
}
