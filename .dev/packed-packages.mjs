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
  await build();
  if (!TARBALLS) await packPublished(folder);
  if (further.length > 0) await npmPack(folder, further);
  return folder;
}

function copyTarballs(source, target) {
  const names = tarballsIn(source);
  // Without one of them, npm would ask the registry for it.
  if (names.length !== publishedPackages().length) throw new Error(`${source} does not have a tarball of each package`);
  for (const name of names) copyFileSync(join(source, name), join(target, name));
}

async function build() {
  await ensurePackages();
  await runQuietly('npm', ['run', '--silent', 'build']);
}

/** Packs the bundles of what is built, here or in a copy of the repository. Resolves to what npm says of each. */
export async function packPublished(target, from = root) {
  // Not before it may have been installed.
  const { bundlePackage } = await import('./bundle.mjs');
  const bundles = temporaryFolder('bundles');
  const folders = publishedPackages().map(({ folder }) => folder);
  for (const folder of folders) await bundlePackage(join(from, folder), join(bundles, folder));
  return npmPack(
    target,
    folders.map((folder) => join(bundles, folder)),
  );
}

async function npmPack(target, folders) {
  const paths = folders.map((folder) => resolve(root, folder));
  const output = await runQuietly('npm', ['pack', '--silent', '--json', ...paths, '--pack-destination', target]);
  return Object.values(JSON.parse(output));
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
    await build();
    await packPublished(target);
  });
}
