// The packages as they would be published, for applications outside of the repository.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ensurePackages, ensureRedis } from './install.mjs';
import { runQuietly } from './processes.mjs';
import { runIn, temporaryFolder } from './temporary-folder.mjs';
import { publishedPackages } from './workspaces.mjs';

/** Of no use to applications: for the program of the matrix alone. */
export const TEST_INFRASTRUCTURE = 'libs/test-infrastructure';

/** Builds and packs the packages, and `further` ones. Resolves to a folder outside of the repository that has them until this process ends. */
export async function packPackages(...further) {
  await ensurePackages();
  process.env.REDIS_SERVER = await ensureRedis();
  await runQuietly('npm', ['run', '--silent', 'build']);
  const folder = temporaryFolder('packed');
  await runQuietly('npm', [
    'pack',
    ...[...publishedPackages().map((each) => each.folder), ...further].flatMap((path) => ['-w', path]),
    '--pack-destination',
    folder,
  ]);
  return folder;
}

/** Installs them, `further` packages, and what the application in a folder below theirs asks for. */
export function installPacked(folder, packed, ...further) {
  const tarballs = readdirSync(packed).filter((name) => name.endsWith('.tgz'));
  const options = ['--strict-peer-deps', '--prefer-offline', '--no-package-lock', '--no-audit', '--no-fund'];
  return runIn(folder, 'npm', ['install', ...options, ...tarballs.map((name) => join(packed, name)), ...further]);
}
