// Runs tests for MutantCopy, in one process for many runs: most of a short run is the start of Jest. The working directory
// is the copy.
import { createRequire } from 'node:module';

const { runCLI } = createRequire(createRequire(`${process.cwd()}/`).resolve('jest'))('@jest/core');

const OPTIONS = {
  _: [],
  $0: '',
  runInBand: true,
  silent: true,
  reporters: [],
  watchman: false,
  testRegex: ['/test/.*\\.(spec|chaos)\\.ts$'],
};
const MOST_MEMORY = 700_000_000;

const before = process.getActiveResourcesInfo().length;

process.on('disconnect', () => process.exit());
process.on('message', (request) => void run(request));

async function run({ files, pattern, env }) {
  Object.assign(process.env, env);
  const cacheDirectory = `${process.cwd()}/cache`;
  const options = { ...OPTIONS, _: files, runTestsByPath: true, testNamePattern: pattern, cacheDirectory };
  const { results } = await runCLI(options, [process.cwd()]);
  const tests = results.testResults.flatMap(({ testFilePath, testResults }) =>
    testResults.map(({ fullName, status, failureMessages }) => ({
      file: testFilePath,
      fullName,
      status,
      failureMessages,
    })),
  );
  const output = results.testResults.map(({ failureMessage }) => failureMessage ?? '').join('\n');
  // What a mistake has left running must not disturb the next run.
  const isUsedUp = process.getActiveResourcesInfo().length > before || process.memoryUsage.rss() > MOST_MEMORY;
  process.send({ tests, output, isUsedUp });
}
