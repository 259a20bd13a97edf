import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../processes.mjs';
import { runIn } from '../temporary-folder.mjs';

const NEEDED = ['package.json', 'packages/session-core', 'packages/session-redis', 'libs'];
const INSTALLED = ['node_modules', 'packages/session-core/node_modules', 'packages/session-redis/node_modules'];
const LEFT_OUT = /\/(node_modules|dist)$|\.tsbuildinfo$/;

const JEST = [
  '--experimental-vm-modules',
  '--disable-warning=ExperimentalWarning',
  'node_modules/jest/bin/jest.js',
  '--cacheDirectory=cache',
  '--silent',
];

/** A copy of the packages, in which one mistake at a time is made. */
export class MutantCopy {
  #runs = 0;

  constructor(folder) {
    this.folder = folder;
  }

  static async make(folder) {
    await mkdir(folder);
    const filter = (path) => !LEFT_OUT.test(path);
    await Promise.all(NEEDED.map((path) => cp(join(root, path), join(folder, path), { recursive: true, filter })));
    await Promise.all(INSTALLED.map((path) => symlink(join(root, path), join(folder, path))));
    return new MutantCopy(folder);
  }

  /** Resolves to what a step does while a mistake is in the copy. */
  async with(mutant, step) {
    const path = join(this.folder, mutant.file);
    const source = await readFile(path, 'utf8');
    await writeFile(path, mutated(source, mutant));
    try {
      return await step();
    } finally {
      await writeFile(path, source);
    }
  }

  /**
   * Runs the tests of some files whose names are these, or end with one of them. Resolves to what Jest tells of each, of
   * those that it passed over as well, and the output.
   */
  async test(files, names, { env, workers = 1 } = {}) {
    const outputFile = join(this.folder, `run-${++this.#runs}.json`);
    const pattern = `(^| )(${names.map(literally).join('|')})$`;
    const args = [...JEST, `--maxWorkers=${workers}`, '--json', `--outputFile=${outputFile}`, '-t', pattern];
    const { output } = await runIn(this.folder, process.execPath, [...args, '--runTestsByPath', ...files], env);
    const report = await readFile(outputFile, 'utf8').catch(() => '{"testResults":[]}');
    const tests = JSON.parse(report).testResults.flatMap(({ assertionResults }) => assertionResults);
    return { output, tests };
  }
}

/** @throws Error when the source has changed so that the mistake cannot be made in it any more */
export function mutated(source, { mistake, file, code, instead }) {
  const [before, after, ...others] = source.split(code);
  if (after === undefined || others.length > 0) {
    const problem = after === undefined ? 'does not have' : 'has more than once';
    throw new Error(`"${mistake}": ${file} ${problem}\n\n${code}\n`);
  }
  return before + instead + after;
}

function literally(text) {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
