import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

/** The file of the program. */
export const COMMAND = fileURLToPath(new URL('../../bin/nest-session.mjs', import.meta.url));

type Environment = Readonly<Record<string, string | undefined>>;

/** Where no Redis is. */
const NOWHERE = { REDIS_URL: 'redis://nowhere.invalid' };

/** `nest-session` in a process of its own. Words of a text are separated by spaces. */
export function startCommand(
  args: string | readonly string[],
  env: Environment = NOWHERE,
): ChildProcessByStdio<null, Readable, Readable> {
  const words = typeof args === 'string' ? args.split(' ').filter(Boolean) : args;
  return spawn(process.execPath, [COMMAND, ...words], {
    env: { ...process.env, NODE_OPTIONS: '', REDIS_URL: undefined, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** The same, until it has ended. */
export async function runCommand(args: string | readonly string[], env?: Environment) {
  const child = startCommand(args, env);
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, stdout, stderr };
}

/** What it prints with `--json`, and its exit code. */
export async function jsonOf<T>(
  args: string | readonly string[],
  env?: Environment,
): Promise<{ code: number | null; json: T }> {
  const words = typeof args === 'string' ? args.split(' ') : args;
  const { code, stdout, stderr } = await runCommand([...words, '--json'], env);
  if (stdout === '') throw new Error(`nest-session ${words.join(' ')} printed nothing: ${stderr}`);
  return { code, json: JSON.parse(stdout) as T };
}
