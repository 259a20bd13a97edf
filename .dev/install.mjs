// Installs what `npm start` and `npm test` need; `npm run setup` installs this, and what `npm run site` needs. Runs
// before any package is there, so it imports Node's modules only.
import { createHash } from 'node:crypto';
import { accessSync, constants, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { main, root, runQuietly } from './processes.mjs';

const OLDEST_REDIS = 7;

/** Installs all that the tests need. Resolves to the environment in which they find the programs. */
export async function ensureTests() {
  await ensurePackages();
  const [REDIS_SERVER, BEANSTALKD] = [await ensureRedis(), await ensureBeanstalkd()];
  await ensureCompiler();
  return { REDIS_SERVER, BEANSTALKD, CHROMIUM: await ensureChromium(), PROMETHEUS: await ensurePrometheus() };
}

/** Installs the npm packages when they are missing, or are not those that the package.json files ask for. */
export function ensurePackages() {
  return ensureInstalled(root, ['package.json', 'package-lock.json', ...packageFiles()]);
}

/** Installs what builds the site, which has a lock file of its own: its packages are no business of the tests. */
export function ensureSitePackages() {
  return ensureInstalled(join(root, 'docs/site'), ['docs/site/package.json', 'docs/site/package-lock.json']);
}

async function ensureInstalled(folder, files) {
  // A workflow has called `npm ci` there: the registry that it asks has every package of the lock file.
  if (process.env.PACKAGES === 'installed') return;
  const stamp = join(folder, 'node_modules/.nest-session-install');
  if (readIfThere(stamp) === hashOf(files)) return;
  console.log('Installing npm packages ...');
  // Not `npm ci`: it refuses a lock file without the binaries of every other system, which not every registry has.
  await runQuietly('npm', ['install', '--prefix', folder, '--include=dev', '--no-progress']);
  // npm may just have completed the lock file.
  writeFileSync(stamp, hashOf(files));
}

/**
 * Resolves to the path of a redis-server, installed when there is none.
 * @throws Error that says in a sentence what to do
 */
export async function ensureRedis() {
  const program = process.env.REDIS_SERVER || findProgram('redis-server') || (await installRedis());
  const version = await runQuietly(program, ['--version']).catch(() => {
    throw new Error(
      `${program} cannot be run: install Redis ${OLDEST_REDIS} or later, or set REDIS_SERVER to its path.`,
    );
  });
  if (Number(/\bv=(\d+)/.exec(version)?.[1]) < OLDEST_REDIS) {
    throw new Error(
      `${program} is too old (${version.trim()}): install Redis ${OLDEST_REDIS} or later, or set REDIS_SERVER to its path.`,
    );
  }
  return program;
}

/**
 * Installs a C compiler where tests need one: on Linux, for the clock of a redis-server.
 * @throws Error that says in a sentence what to do
 */
async function ensureCompiler() {
  if (process.platform !== 'linux' || (await canCompile())) return;
  if (!canUseApt()) throw new Error(`${NO_COMPILER}: sudo apt-get install gcc libc6-dev, or what your system has.`);
  console.log('Installing gcc with apt-get ...');
  // One unreachable source of many is no reason to give up: the installation itself tells whether it mattered.
  await runQuietly('apt-get', ['update', '-q']).catch(() => undefined);
  const patiently = ['-o', 'DPkg::Lock::Timeout=300'];
  await runQuietly('apt-get', ['install', '-qy', '--no-install-recommends', ...patiently, 'gcc', 'libc6-dev']);
  if (!(await canCompile())) throw new Error(`${NO_COMPILER}, although gcc was installed: is it on the PATH?`);
}

const NO_COMPILER = 'The tests need gcc and the headers of the C library';

/** Whether there is a compiler, and the headers, which are a package of their own. */
async function canCompile() {
  const source = join(root, 'libs/test-infrastructure/src/time/program.clock.c');
  return runQuietly('gcc', ['-fsyntax-only', source]).then(
    () => true,
    () => false,
  );
}

/**
 * Resolves to the path of a Chromium, installed when there is none.
 * @throws Error that says in a sentence what to do
 */
export async function ensureChromium() {
  const program = process.env.CHROMIUM || findChromium() || (await installChromium());
  if (!program) {
    throw new Error(
      'The tests need Chromium: install it (Debian: sudo apt-get install chromium; macOS: brew install --cask chromium), ' +
        'or set CHROMIUM to the path of the program; Chrome and Edge will do.',
    );
  }
  return program;
}

function findChromium() {
  const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
  return names.map(findProgram).find((path) => path !== undefined);
}

async function installChromium() {
  if (!canUseApt()) return undefined;
  console.log('Installing chromium with apt-get ...');
  await runQuietly('apt-get', ['update', '-q']).catch(() => undefined);
  const patiently = ['-o', 'DPkg::Lock::Timeout=300'];
  await runQuietly('apt-get', ['install', '-qy', '--no-install-recommends', ...patiently, 'chromium']);
  return findChromium();
}

function canUseApt() {
  return process.getuid?.() === 0 && findProgram('apt-get') !== undefined;
}

async function installRedis() {
  if (canUseApt()) {
    console.log('Installing redis-server with apt-get ...');
    await installServer('redis-server');
  } else if (process.platform === 'darwin' && findProgram('brew')) {
    console.log('Installing redis with brew ...');
    await runQuietly('brew', ['install', 'redis']);
  } else {
    throw new Error(
      `There is no redis-server here: install Redis ${OLDEST_REDIS} or later (Debian and Ubuntu: sudo apt-get install ` +
        'redis-server; macOS: brew install redis), or set REDIS_SERVER to the path of the program.',
    );
  }
  const program = findProgram('redis-server');
  if (!program) throw new Error('redis-server was installed but is not on the PATH: set REDIS_SERVER to its path.');
  return program;
}

/**
 * Resolves to the path of a beanstalkd, installed when there is none.
 * @throws Error that says in a sentence what to do
 */
export async function ensureBeanstalkd() {
  const program = process.env.BEANSTALKD || findProgram('beanstalkd') || (await installBeanstalkd());
  if (!program) {
    throw new Error(
      'The tests need beanstalkd: install it (Debian: sudo apt-get install beanstalkd; macOS: brew install beanstalkd), ' +
        'or set BEANSTALKD to the path of the program.',
    );
  }
  return program;
}

async function installBeanstalkd() {
  if (!canUseApt()) return undefined;
  console.log('Installing beanstalkd with apt-get ...');
  await installServer('beanstalkd');
  return findProgram('beanstalkd');
}

/** Resolves to the path of a Prometheus, installed where that can be. Without one, tests of the alerts are skipped. */
async function ensurePrometheus() {
  return process.env.PROMETHEUS || findProgram('prometheus') || (await installPrometheus());
}

async function installPrometheus() {
  if (!canUseApt()) return undefined;
  console.log('Installing prometheus with apt-get ...');
  await installServer('prometheus');
  return findProgram('prometheus');
}

/** Installs a package of Debian, without the service that it brings. */
async function installServer(name) {
  await runQuietly('/bin/sh', [join(root, '.dev/install-server.sh'), name]);
}

function findProgram(name) {
  const candidates = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, name));
  return candidates.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** A hash of everything that decides what belongs into node_modules: binaries differ by system. */
function hashOf(files) {
  const hash = createHash('sha256').update(`${process.platform} ${process.arch}`);
  for (const file of files) hash.update(`\n${file}\n${readIfThere(join(root, file)) ?? ''}`);
  return hash.digest('hex');
}

function packageFiles() {
  const { workspaces } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return workspaces
    .flatMap((pattern) => (pattern.endsWith('/*') ? foldersIn(pattern.slice(0, -2)) : [pattern]))
    .map((folder) => `${folder}/package.json`)
    .sort();
}

function foldersIn(folder) {
  return readdirSync(join(root, folder)).map((name) => `${folder}/${name}`);
}

function readIfThere(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    await ensureTests();
    await ensureSitePackages();
  });
}
