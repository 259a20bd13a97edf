// Mistakes in TypeScript, as Stryker makes them.
import { availableParallelism } from 'node:os';
import { temporaryFolder } from '../temporary-folder.mjs';

/**
 * Makes every mistake that Stryker knows in the files of a folder, or in one file. For each, it runs specs of the
 * package that import the file: those whose paths have one of the words, or all. Prints the score and what no test
 * noticed.
 */
export async function mutate(path, words) {
  // Not before it may have been installed.
  const { Stryker } = await import('@stryker-mutator/core');
  const [home] = path.split('/src');
  const testRegex = `/${home}/test(?=.*(${words.join('|')})).*\\.spec\\.ts$`;
  const stryker = new Stryker({
    mutate: [path.endsWith('.ts') ? path : `${path}/**/*.ts`],
    testRunner: 'jest',
    // Stryker's environment is in the place of ours, and builds on that of Node.js.
    jest: { config: { testEnvironment: 'node', testRegex } },
    testRunnerNodeArgs: ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'],
    coverageAnalysis: 'perTest',
    // What tests leave behind, and what hung, slows down the runs after it.
    maxTestRunnerReuse: 25,
    // A mistake in what runs once for each file, such as a constant, would take a run of all specs.
    ignoreStatic: true,
    concurrency: availableParallelism(),
    tempDirName: temporaryFolder('stryker'),
    reporters: ['clear-text', 'progress-append-only'],
    clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  });
  await stryker.runMutationTest();
}
