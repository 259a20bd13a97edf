import { fork } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from '../processes.mjs';

// Before its tests, Jest embeds the scripts of the copy.
const EMBED = '.dev/embed-scripts.mjs';
const PACKAGES = [
  'packages/session-core',
  'packages/session-redis',
  'packages/session-express',
  'packages/session-websockets',
];
const NEEDED = ['package.json', 'docs', ...PACKAGES, 'libs', EMBED];
const INSTALLED = ['node_modules', ...PACKAGES.map((path) => `${path}/node_modules`)];
const LEFT_OUT = /\/(node_modules|dist)$|\.tsbuildinfo$/;

const HOST = fileURLToPath(new URL('./jest.host.mjs', import.meta.url));
const HOST_OPTIONS = {
  execArgv: ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'],
  stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
};
// Only for what would never end.
const TIMEOUT = 1_200_000;

/** A copy of the packages, in which one mistake at a time is made. */
export class MutantCopy {
  #host;

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
  async with({ instead, place: { file, start, end } }, step) {
    const path = join(this.folder, file);
    const source = await readFile(path, 'utf8');
    await writeFile(path, source.slice(0, start) + instead + source.slice(end));
    try {
      return await step();
    } finally {
      await writeFile(path, source);
    }
  }

  /**
   * Runs the tests of some files whose names are these, or end with one of them. Resolves to what Jest tells of each, of
   * those that it passed over as well, and the messages of those that failed.
   */
  async test(files, names, env = {}) {
    this.#host ??= start(this.folder);
    const { child, died } = this.#host;
    const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT);
    const pattern = names.length > 0 ? `(^| )(${names.map(literally).join('|')})$` : '';
    child.send({ files: files.map((file) => join(this.folder, file)), pattern, env });
    const [{ tests, output, isUsedUp }] = await Promise.race([once(child, 'message'), died]);
    clearTimeout(timer);
    if (isUsedUp) this.close();
    return { tests: tests.map((test) => ({ ...test, file: test.file.slice(this.folder.length + 1) })), output };
  }

  /** Ends what runs for it. */
  close() {
    this.#host?.child.kill('SIGKILL');
    this.#host = undefined;
  }
}

function start(cwd) {
  const child = fork(HOST, { ...HOST_OPTIONS, cwd });
  const result = { tests: [], output: 'Jest has died, or has not ended', isUsedUp: true };
  return { child, died: once(child, 'exit').then(() => [result]) };
}

function literally(text) {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
