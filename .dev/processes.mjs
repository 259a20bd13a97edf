import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** The top of the repository: commands run here, wherever they were called. */
export const root = fileURLToPath(new URL('../', import.meta.url));

const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Calls `stop` for every signal that asks us to end, instead of ending at once; one Ctrl-C may come as several. */
export function onStopSignal(stop) {
  for (const signal of stopSignals) process.on(signal, stop);
  return () => {
    for (const signal of stopSignals) process.off(signal, stop);
  };
}

/** Runs a command that shares our terminal and resolves to its exit code. We outlive it, also when told to stop. */
export async function run(command, args, env = {}) {
  const child = spawn(command, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } });
  const release = onStopSignal((signal) => child.kill(signal));
  const [code] = await once(child, 'close').finally(release);
  return code ?? 1;
}

/**
 * Runs a command whose output matters only when it fails.
 * @throws Error that ends with the output
 */
export async function runQuietly(command, args) {
  const { code, output } = await capture(command, args);
  if (code !== 0) throw new Error(`${[command, ...args].join(' ')} failed:\n${output}`);
  return output;
}

/**
 * Runs a command and resolves to its exit code, null when it was killed, and its output. Takes options of `spawn()`.
 */
export async function capture(command, args, options = {}) {
  const child = spawn(command, args, { cwd: root, ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const [code] = await once(child, 'close');
  return { code, output };
}

/** Runs a script to its end; what it throws is for a person to read, so it is printed without a stack. */
export async function main(script) {
  try {
    process.exitCode = await script();
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
