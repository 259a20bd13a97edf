// The packages as they would be published, for applications outside of the repository.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensurePackages, ensureRedis } from './install.mjs';
import { capture, onStopSignal, runQuietly } from './processes.mjs';

const PACKAGES = ['packages/session-core', 'packages/session-redis', 'libs/testing'];
// Only for what would never end: it takes seconds.
const TIMEOUT = 180_000;

const stopped = new AbortController();

/** Builds and packs the packages. Resolves to a folder outside of the repository that has them until this process ends. */
export async function packPackages() {
  await ensurePackages();
  process.env.REDIS_SERVER = await ensureRedis();
  await runQuietly('npm', ['run', '--silent', 'build']);
  const folder = temporaryFolder();
  await runQuietly('npm', ['pack', ...PACKAGES.flatMap((path) => ['-w', path]), '--pack-destination', folder]);
  return folder;
}

/** Installs them, and what the application in a folder below theirs asks for. */
export function installPacked(folder, packed) {
  const tarballs = readdirSync(packed).filter((name) => name.endsWith('.tgz'));
  const options = ['--strict-peer-deps', '--prefer-offline', '--no-package-lock', '--no-audit', '--no-fund'];
  return runIn(folder, 'npm', ['install', ...options, ...tarballs.map((name) => join(packed, name))]);
}

/** Runs a command to its end, for three minutes at the most. Resolves to its exit code, null when it did not end by itself, and output. */
export async function runIn(folder, command, args, env = {}) {
  const { code, output } = await capture(command, args, {
    cwd: folder,
    env: { ...process.env, NO_COLOR: '1', ...env },
    signal: stopped.signal,
    timeout: TIMEOUT,
    // npm goes on writing for a while after any other.
    killSignal: 'SIGKILL',
  });
  return { code, output: code === null ? `${output}\nNot ended after ${TIMEOUT} ms, or killed.` : output };
}

/** Removed when this process ends, which a signal makes it do at once. */
function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'nest-session-packed-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  onStopSignal(() => {
    stopped.abort();
    process.exit(1);
  });
  return folder;
}
