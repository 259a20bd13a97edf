import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** The version before this one: the tag of the last release, once there is one. */
const COMMIT = '2eed6bb67493c66891b6b03f94d5d970c7b00961';
/** Its packages that an application needs: their folders there, and those with the same packages of others here. */
const PACKAGES = {
  core: { path: 'packages/session-core', installed: 'packages/session-core/node_modules' },
  redis: { path: 'packages/session-redis', installed: 'packages/redis-events/node_modules' },
};
/** Where that version has what the program imports. */
const IMPORTS = {
  '@nest-session/deadlines/redis': '@nest-session/redis/deadlines',
  '@nest-session/deadlines': '@nest-session/core/deadlines',
};

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
/** Both versions use the same packages of others: those above this folder. */
const CACHE = join(ROOT, 'node_modules/.cache');

/** The packages of the version before this one, and a program that runs them. */
export interface FormerVersion {
  readonly program: string;
  remove(): Promise<void>;
}

/**
 * Builds them out of the repository, with a copy of a program that is to run them.
 * @throws Error that says what to do where the repository lacks the commit
 */
export async function buildFormerVersion(program: string): Promise<FormerVersion> {
  await mkdir(CACHE, { recursive: true });
  const folder = await mkdtemp(join(CACHE, 'former-version-'));
  const archive = join(folder, 'sources.tar');
  await execute('git', ['-C', ROOT, 'archive', `--output=${archive}`, COMMIT]).catch((cause: unknown) => {
    throw new Error(`This clone lacks the former version, ${COMMIT}: call git fetch --unshallow`, { cause });
  });
  await execute('tar', ['-xf', archive, '-C', folder]);
  await mkdir(join(folder, 'node_modules/@nest-session'), { recursive: true });
  for (const [name, { path, installed }] of Object.entries(PACKAGES)) {
    await symlink(join(folder, path), join(folder, 'node_modules/@nest-session', name));
    if (existsSync(join(ROOT, installed))) await symlink(join(ROOT, installed), join(folder, path, 'node_modules'));
  }
  await execute(process.execPath, [join(folder, '.dev/embed-scripts.mjs')]);
  const folders = Object.values(PACKAGES).map(({ path }) => join(folder, path));
  await execute(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-b', ...folders]);
  const copy = join(folder, 'instance.mjs');
  const imports = Object.entries(IMPORTS).reduce(
    (text, [now, before]) => text.replace(`'${now}'`, `'${before}'`),
    await readFile(program, 'utf8'),
  );
  await writeFile(copy, imports);
  return { program: copy, remove: () => rm(folder, { recursive: true }) };
}
