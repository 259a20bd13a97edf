// npm run test:spring: a running Spring Boot beside NestJS, on one Redis, by what lies in
// packages/session-spring/test/spring-boot. Maven packages `application` once, and the jar is kept outside of the
// repository. For each repository and serializer of Spring, the checks of `read-mode` run beside it. The programs of
// docs/spring-boot.md run together, with the checks of `page` and `shared-page`. Without a JDK, Maven or what Maven
// fetches, all of this is skipped, loudly. Words choose by repository, serializer and heading of the page:
// `npm run test:spring -- indexed`.
import { cp, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { check, conclude, countsOf, report } from './checks.mjs';
import { compileIn, runChecksIn } from './compiled-application.mjs';
import { ensurePackages, ensureRedis } from './install.mjs';
import { main, root, runQuietly } from './processes.mjs';
import { writePrograms } from '../packages/session-spring/test/spring-boot/page-programs.mjs';
import { temporaryFolder } from './temporary-folder.mjs';

const FOLDER = join(root, 'packages/session-spring/test/spring-boot');
const REPOSITORIES = { simple: { REPOSITORY: 'simple' }, indexed: { REPOSITORY: 'indexed' } };
const SORTED_SET = { REPOSITORY: 'indexed', EXPIRATIONS: 'sorted-set' };
const SERIALIZERS = ['jdk', 'plain', 'typed', 'security'];

/**
 * Checks of a folder, and the environments in which they run. `heading`: of the programs of the page that they need.
 */
const SUITES = [
  {
    checks: 'read-mode',
    trials: [
      ...Object.entries(REPOSITORIES).flatMap(([repository, env]) =>
        SERIALIZERS.map((serializer) => readModeTrial(repository, serializer, env)),
      ),
      readModeTrial('indexed, sorted set', 'plain', SORTED_SET),
    ],
  },
  {
    checks: 'shared-mode',
    trials: [
      ...['plain', 'typed', 'security'].map((serializer) => ({
        title: ['shared', serializer],
        env: { SERIALIZER: serializer },
      })),
      { title: ['shared, sorted set', 'plain'], env: { SERIALIZER: 'plain', EXPIRATIONS: 'sorted-set' } },
    ],
  },
  pageSuite('Read the sessions of Spring', 'page'),
  pageSuite('Share sessions with Spring', 'shared-page'),
];

function readModeTrial(repository, serializer, env) {
  return { title: [repository, serializer], env: { ...env, SERIALIZER: serializer } };
}

function pageSuite(heading, checks) {
  return { checks, heading, trials: [{ title: ['page', heading], env: {} }] };
}

await main(async () => {
  const { values, positionals: words } = parseArgs({
    options: { outputFile: { type: 'string' } },
    allowPositionals: true,
  });
  const isChosen = ({ title }) => words.every((word) => title.join(' ').includes(word));
  const suites = SUITES.map((suite) => ({ ...suite, trials: suite.trials.filter(isChosen) }));
  const chosen = suites.filter(({ trials }) => trials.length > 0);
  if (chosen.length === 0) throw new Error(`Nothing has all of these words in its title: ${words.join(' ')}`);
  await ensurePackages();
  process.env.REDIS_SERVER = await ensureRedis();
  await runQuietly('npm', ['run', '--silent', 'build']);
  // Built by the time it is asked for.
  const java = await import('../libs/test-infrastructure/dist/spring.js');
  const missing = java.missingJava();
  if (missing) return conclude(skipped(chosen, missing), values.outputFile);
  const rows = [];
  for (const suite of chosen) rows.push(...(await runSuite(suite, java)));
  return conclude(rows, values.outputFile);
});

/** Resolves to the rows of the table. */
async function runSuite({ checks, heading, trials }, java) {
  const folder = join(temporaryFolder('spring'), checks);
  await cp(join(FOLDER, checks), folder, { recursive: true });
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  if (heading) await writePrograms(heading, folder);
  const packaged = await packageJava(java, heading ? join(folder, 'java') : join(FOLDER, 'application'));
  if (packaged.unfetched) return skipped([{ trials }], `Maven cannot fetch what it needs:\n${packaged.output}`);
  const rows = [report([checks, 'Maven'], packaged), report([checks, 'types'], await compileIn(folder))];
  return countsOf(rows).failed > 0 ? rows : [...rows, ...(await runTwoAtATime(trials, folder))];
}

async function packageJava({ packagedJava, UnfetchedPackagesError }, folder) {
  const expected = 'Maven packages the application of Spring Boot';
  try {
    await packagedJava(folder);
    return { output: '', checks: [check(expected, true)] };
  } catch (error) {
    return {
      output: error.message,
      checks: [check(expected, false)],
      unfetched: error instanceof UnfetchedPackagesError,
    };
  }
}

async function runTwoAtATime(trials, folder) {
  const waiting = [...trials];
  const rows = [];
  const runNext = async () => {
    for (let trial = waiting.shift(); trial; trial = waiting.shift()) {
      rows.push(report(trial.title, await runChecksIn(folder, trial.env)));
    }
  };
  await Promise.all([runNext(), runNext()]);
  return rows;
}

/** What could not be tried counts, and nobody overlooks it. */
function skipped(suites, reason) {
  console.log(`\n${'!'.repeat(40)}\nNOT TESTED beside Spring Boot. ${reason}\n${'!'.repeat(40)}`);
  const trials = suites.flatMap((suite) => suite.trials);
  return trials.map(({ title }) =>
    report(title, { output: '', checks: [{ name: 'beside a running Spring Boot', result: 'skipped' }] }),
  );
}
