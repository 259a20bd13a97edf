import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { isQuick } from './results.js';
import { printTable, runRounds } from './rounds.js';

// How long `@nest-session/redis` takes to load, with those of ours that it needs: as npm has it, and with a file for
// each module, as tsc has compiled it.
const execute = promisify(execFile);

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SCOPE = '@nest-session';
const OURS = ['session-core', 'redis-events', 'session-redis'].map((name) => join(ROOT, 'packages', name));
/** What it needs of others, which is loaded before the time counts. */
const OTHERS = ['reflect-metadata', 'rxjs', '@nestjs/common', '@nestjs/core', '@nestjs/schedule', 'ioredis', 'cron'];
const WAYS = {
  import: `await import('${SCOPE}/redis')`,
  require: `createRequire(process.cwd() + '/main.js')('${SCOPE}/redis')`,
};
const ROUNDS = isQuick ? 3 : 15;

interface Manifest {
  readonly name: string;
  readonly version: string;
}

/** The folder of an application that has our packages so, and the others from here. */
async function applicationIn(
  folder: string,
  place: (target: string, from: Manifest & { workspace: string }) => Promise<unknown>,
) {
  const modules = join(folder, 'node_modules');
  await mkdir(join(modules, SCOPE), { recursive: true });
  for (const name of await readdir(join(ROOT, 'node_modules'))) {
    if (name !== SCOPE) await symlink(join(ROOT, 'node_modules', name), join(modules, name));
  }
  for (const workspace of OURS) {
    const manifest = JSON.parse(await readFile(join(workspace, 'package.json'), 'utf8')) as Manifest;
    const { name } = manifest;
    await mkdir(join(modules, name));
    await place(join(modules, name), { workspace, ...manifest });
    const nested = join(workspace, 'node_modules');
    if (existsSync(nested)) await symlink(nested, join(modules, name, 'node_modules'));
  }
  return folder;
}

/** Loads it in a process of its own. Resolves to milliseconds. */
async function load(application: string, way: keyof typeof WAYS, isCold: boolean): Promise<number> {
  const files = ['-L', join(application, 'node_modules', SCOPE), '-path', '*/dist/*', '-type', 'f'];
  // The system drops what it has kept of the files.
  if (isCold) await execute('find', [...files, '-exec', 'dd', 'if={}', 'iflag=nocache', 'count=0', 'status=none', ';']);
  const program = [
    "import { createRequire } from 'node:module';",
    ...OTHERS.map((name) => `import '${name}';`),
    'const began = performance.now();',
    `${WAYS[way]};`,
    'console.log(performance.now() - began);',
  ];
  const options = ['--input-type=module', '--eval', program.join('\n')];
  const { stdout } = await execute(process.execPath, options, { cwd: application });
  return Number(stdout);
}

const folder = await mkdtemp(join(tmpdir(), 'imports-'));
try {
  await execute('npm', ['run', '--silent', 'release:pack', '--', folder], { cwd: ROOT });
  const modules = await applicationIn(join(folder, 'modules'), (target, { workspace }) =>
    Promise.all(
      ['package.json', 'dist'].map((path) => cp(join(workspace, path), join(target, path), { recursive: true })),
    ),
  );
  const bundles = await applicationIn(join(folder, 'bundles'), (target, { name, version }) => {
    const tarball = `${name.slice(1).replace('/', '-')}-${version}.tgz`;
    return execute('tar', ['-xzf', join(folder, tarball), '-C', target, '--strip-components=1']);
  });
  for (const isCold of [false, true]) {
    for (const way of Object.keys(WAYS) as (keyof typeof WAYS)[]) {
      const contenders = Object.entries({ 'a file for each module': modules, 'as npm has it': bundles }).map(
        ([name, application]) => ({ name, measure: () => load(application, way, isCold) }),
      );
      const title = `${way} of ${SCOPE}/redis, ms, files ${isCold ? 'not yet read' : 'read before'}`;
      printTable(title, await runRounds(contenders, ROUNDS, 1));
    }
  }
} finally {
  await rm(folder, { recursive: true });
}
