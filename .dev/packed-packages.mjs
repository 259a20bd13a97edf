// The packages as they would be published, for applications outside of the repository.
// `npm run release:pack -- FOLDER` packs them into a folder. With TARBALLS, the path of that folder, tests use what is
// there.
import { copyFileSync, mkdirSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensurePackages, ensureRedis } from './install.mjs';
import { main, root, runQuietly } from './processes.mjs';
import { runIn, temporaryFolder } from './temporary-folder.mjs';
import { publishedPackages } from './workspaces.mjs';

/** Of no use to applications: for the program of the matrix alone. */
export const TEST_INFRASTRUCTURE = 'libs/test-infrastructure';

/**
 * Builds the packages, and packs them and `further` ones. Resolves to a folder outside of the repository that has them
 * until this process ends.
 */
export async function packPackages(...further) {
  process.env.REDIS_SERVER = await ensureRedis();
  const folder = temporaryFolder('packed');
  const { TARBALLS } = process.env;
  if (TARBALLS) copyTarballs(resolve(root, TARBALLS), folder);
  await pack(folder, [...(TARBALLS ? [] : publishedFolders()), ...further]);
  return folder;
}

function copyTarballs(source, target) {
  const names = tarballsIn(source);
  // Without one of them, npm would ask the registry for it.
  if (names.length !== publishedFolders().length) throw new Error(`${source} does not have a tarball of each package`);
  for (const name of names) copyFileSync(join(source, name), join(target, name));
}

async function pack(target, folders) {
  await ensurePackages();
  await runQuietly('npm', ['run', '--silent', 'build']);
  if (folders.length === 0) return;
  await runQuietly('npm', ['pack', ...folders.flatMap((path) => ['-w', path]), '--pack-destination', target]);
}

function publishedFolders() {
  return publishedPackages().map(({ folder }) => folder);
}

function tarballsIn(folder) {
  return readdirSync(folder).filter((name) => name.endsWith('.tgz'));
}

/** Installs them, `further` packages, and what the application in a folder below theirs asks for. */
export function installPacked(folder, packed, ...further) {
  const options = ['--strict-peer-deps', '--prefer-offline', '--no-package-lock', '--no-audit', '--no-fund'];
  return runIn(folder, 'npm', [
    'install',
    ...options,
    ...tarballsIn(packed).map((name) => join(packed, name)),
    ...further,
  ]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    const target = resolve(process.argv[2] ?? '');
    if (!process.argv[2]) throw new Error('Name the folder: npm run release:pack -- FOLDER');
    mkdirSync(target, { recursive: true });
    await pack(target, publishedFolders());
  });
}
