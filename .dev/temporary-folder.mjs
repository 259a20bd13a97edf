// Where things are tried that must not happen in the repository itself.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { capture, onStopSignal } from './processes.mjs';

// Only for what would never end: it takes seconds, and minutes where a machine is slow.
const TIMEOUT = 1_200_000;

/** Where files are that need not reach a disk: some megabytes, since some containers have no more. */
export const IN_MEMORY = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

const stopped = new AbortController();

/** A folder outside of the repository. It is removed when this process ends, which a signal makes it do at once. */
export function temporaryFolder(purpose, parent = tmpdir()) {
  const folder = mkdtempSync(join(parent, `nest-session-${purpose}-`));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  onStopSignal(() => {
    stopped.abort();
    process.exit(1);
  });
  return folder;
}

/**
 * Runs a command to its end, for twenty minutes at the most. Resolves to its exit code, null when it did not end by
 * itself, and output.
 */
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
