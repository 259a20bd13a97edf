// npm test: everything the tests need, then Jest, which gets the arguments. Never skips for lack of Redis. The
// environment variables IOREDIS and BULLMQ are the folders of packages in the place of those of the workspace.
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { ensureTests } from './install.mjs';
import { main, run, runQuietly } from './processes.mjs';

const NUMBER_OF_WORKERS = '--maxWorkers=';

await main(async () => {
  const programs = await ensureTests();
  // Tests import the sources; the programs that some of them start are the built ones.

  return run(
    process.execPath,
    [
      '--experimental-vm-modules',
      '--disable-warning=ExperimentalWarning',
      // Jest keeps about 16 MB of every test file, and V8 far more garbage as long as it may. A worker is replaced
      // between two files when it has more than `workerIdleMemoryLimit`.
      '--max-old-space-size=900',
      // With the 16 MB that V8 has otherwise, the tests of requests and tokens in core take 9 % more processor time.
      '--max-semi-space-size=32',
      'node_modules/jest/bin/jest.js',
      ...otherPackages({ ioredis: process.env.IOREDIS, bullmq: process.env.BULLMQ }),
      ...withWorkers(process.argv.slice(2)),
    ],
    programs,
  );
});

/**
 * More workers than processors, because many tests wait for Redis, browsers and timers; Jest takes no percentage above
 * 100. Of several numbers the last one counts, as in `npm run chaos -- --maxWorkers=2`; Jest would take the first.
 */
function withWorkers(args) {
  if (args.some((arg) => /^(-i|-w|--runInBand)(=|$)/.test(arg))) return args;
  const isNumber = (arg) => arg.startsWith(NUMBER_OF_WORKERS);
  const number = args.findLast(isNumber) ?? `${NUMBER_OF_WORKERS}${2 * availableParallelism()}`;
  return [number, ...args.filter((arg) => !isNumber(arg))];
}

/** The sources and the tests get the packages of these folders; the programs that some tests start do not. */
function otherPackages(folders) {
  const given = Object.entries(folders).filter(([, folder]) => folder);
  if (given.length === 0) return [];
  const { jest } = JSON.parse(readFileSync('package.json', 'utf8'));
  const others = Object.fromEntries(given.map(([name, folder]) => [`^${name}$`, folder]));
  return [`--config=${JSON.stringify({ ...jest, moduleNameMapper: { ...others, ...jest.moduleNameMapper } })}`];
}
