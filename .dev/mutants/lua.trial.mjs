// Mistakes in the Redis scripts, which no other tool reads. Jest gets the scripts with the mistake in the place of
// every `lua-sources.ts`, so nothing has to be copied.
import { readFile, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { check } from '../checks.mjs';
import { luaSources, scriptFolders } from '../embed-scripts.mjs';
import { capture, root } from '../processes.mjs';

// It fails whatever looks at it: nothing has noticed the mistake.
const CANNOT_RUN = /SyntaxError|ReferenceError|Error compiling script|user_script:\d+: (attempt to|Script attempted)/;
const FILES = '\\.(spec|chaos)\\.ts$';

/** The scripts as each mistake leaves them. What is wrong with the list is one error. */
export function withMistakes(mutants) {
  const sources = allSources();
  const problems = [];
  const made = mutants.map((mutant) => {
    const parts = (sources[mutant.in] ?? '').split(patternOf(mutant.code));
    if (parts.length !== 2)
      problems.push(`"${mutant.mistake}": ${mutant.in} has ${parts.length - 1} times:\n${mutant.code}`);
    return { ...mutant, sources: { ...sources, [mutant.in]: parts.join(mutant.instead) } };
  });
  if (problems.length > 0) throw new Error(problems.join('\n\n'));
  return made;
}

/** Whether the test that is written down with each mistake fails with it, and passes without it: a check for each. */
export async function tryOut(mutants, folder, env) {
  const jests = await Promise.all(Array.from({ length: availableParallelism() }, (_, i) => jestIn(folder, i, env)));
  const { tests: unmutated, output } = await jests[0](mutants, allSources());
  const waiting = [...mutants];
  const checks = [];
  await Promise.all(
    jests.map(async (jest) => {
      for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
        const problem = await problemOf(mutant, unmutated, output, jest);
        console.log(`${mutant.mistake}: ${problem ?? `killed by "${mutant.test}"`}`);
        checks.push(check(mutant.mistake, problem === undefined));
      }
    }),
  );
  return checks;
}

/** Those of all packages. */
function allSources() {
  return Object.assign({}, ...scriptFolders().map(luaSources));
}

/** Why a mistake does not count as noticed. */
async function problemOf(mutant, unmutated, output, jest) {
  const before = unmutated.filter((each) => isNamed(each, mutant));
  if (before.length === 0) return `THERE IS NO TEST "${mutant.test}"\n${output}`;
  if (before.some(({ status }) => status !== 'passed')) return `FAILS WITHOUT IT: "${mutant.test}"\n${output}`;
  const { tests } = await jest([mutant], mutant.sources);
  const messages = tests.filter((each) => isNamed(each, mutant)).flatMap(({ failureMessages }) => failureMessages);
  if (messages.length === 0) return `NOT NOTICED by "${mutant.test}"`;
  return messages.some((message) => CANNOT_RUN.test(message)) ? `CANNOT RUN\n${messages.join('\n')}` : undefined;
}

/** Runs the tests of some mutants with some sources, and resolves to what Jest tells of each. */
async function jestIn(folder, number, env) {
  const [sources, report] = [join(folder, `${number}-lua-sources.mjs`), join(folder, `${number}.json`)];
  const { jest } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  const moduleNameMapper = { 'lua-sources\\.js$': sources, ...jest.moduleNameMapper };
  const config = JSON.stringify({ ...jest, moduleNameMapper, reporters: [], testTimeout: 300_000, testRegex: FILES });
  const fixed = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js'];
  const output = ['--runInBand', '--silent', '--json', `--outputFile=${report}`];
  return async (mutants, scripts) => {
    await writeFile(sources, `export const LUA_SOURCES = ${JSON.stringify(scripts)};\n`);
    const titles = `--testNamePattern=(^| )(${mutants.map(({ test }) => literally(test)).join('|')})$`;
    const specs = [...new Set(mutants.map(({ spec }) => `/${literally(spec)}${FILES}`))];
    const args = [...fixed, `--config=${config}`, ...output, titles, ...specs];
    await capture(process.execPath, args, { env: { ...process.env, ...env } });
    const { testResults } = JSON.parse(await readFile(report, 'utf8'));
    const tests = testResults.flatMap(({ name, assertionResults }) =>
      assertionResults.map((each) => ({ ...each, name })),
    );
    return { tests, output: testResults.map(({ message }) => message).join('\n') };
  };
}

/** A test may run several times, such as for each number of partitions; the others of its file are passed over. */
function isNamed({ name, fullName, status }, { spec, test }) {
  return status !== 'pending' && name.includes(`/${spec}.`) && (fullName === test || fullName.endsWith(` ${test}`));
}

function patternOf(code) {
  return new RegExp(code.trim().split(/\s+/).map(literally).join('\\s+'));
}

function literally(text) {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
