// Mistakes in TypeScript, as Stryker makes them.
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const NO_WARNING = '--disable-warning=ExperimentalWarning';

/**
 * Makes every mistake that Stryker knows in the files of a folder, or in one file, and runs the specs of its package for
 * each: those whose paths have one of the words, or all of them. Prints the score and what nobody noticed.
 */
export async function mutate(path, words) {
  // Not before it may have been installed.
  const { Stryker } = await import('@stryker-mutator/core');
  const [home] = path.split('/src');
  const stryker = new Stryker({
    mutate: [path.endsWith('.ts') ? path : `${path}/**/*.ts`],
    testRunner: 'jest',
    // Related tests: of the specs that are chosen, those that import the file.
    jest: {
      config: { testRegex: `/${home}/test(?=.*(${words.join('|')})).*\\.spec\\.ts$` },
      enableFindRelatedTests: true,
    },
    testRunnerNodeArgs: ['--experimental-vm-modules', NO_WARNING],
    coverageAnalysis: 'perTest',
    // Of what is made once for the whole process, each mistake would take a run of all specs.
    ignoreStatic: true,
    concurrency: 1,
    tempDirName: join(tmpdir(), `nest-session-stryker-${process.pid}`),
    cleanTempDir: 'always',
    reporters: ['clear-text', 'progress-append-only'],
    clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  });
  await stryker.runMutationTest();
}
