import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import { ALL_SCRIPTS, scriptOf } from './all.scripts.js';

/** The commands that scripts call, as Redis names them, those of rare cases too. */
export function calledBy(scripts: readonly string[]): string[] {
  const call = /redis\.p?call\('(XGROUP|XINFO)', '(\w+)'|(?:redis\.p?call\(|read\(|read_typed\('\w+', )'(\w+)'/g;
  const calls = scripts.flatMap((script) => [...scriptOf(script).matchAll(call)]);
  return calls.map(([, container, sub, name]) => (name ?? `${container}|${sub}`).toLowerCase());
}

/** Which scripts a server has run since its SCRIPT FLUSH. */
export async function scriptsThatRan(client: Redis): Promise<string[]> {
  const hashes = ALL_SCRIPTS.map((name) => createHash('sha1').update(scriptOf(name)).digest('hex'));
  const exist = (await client.script('EXISTS', ...(hashes as [string]))) as number[];
  return ALL_SCRIPTS.filter((_, i) => exist[i] === 1);
}
