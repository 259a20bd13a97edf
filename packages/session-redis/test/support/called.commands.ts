import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import { LUA_SOURCES } from '../../src/scripts/lua-sources.js';
import { loadScript } from '../../src/scripts/script.loader.js';

/** The commands that scripts call, as Redis names them, those of rare cases too. */
export function calledBy(scripts: readonly string[]): string[] {
  const call = /redis\.p?call\('(XGROUP|XINFO)', '(\w+)'|(?:redis\.p?call\(|read\(|read_typed\('\w+', )'(\w+)'/g;
  const calls = scripts.flatMap((script) => [...loadScript(script).matchAll(call)]);
  return calls.map(([, container, sub, name]) => (name ?? `${container}|${sub}`).toLowerCase());
}

/** Which scripts a server has run since its SCRIPT FLUSH. */
export async function scriptsThatRan(client: Redis): Promise<string[]> {
  const all = Object.keys(LUA_SOURCES).filter((name) => !/^(library|includes)\//.test(name));
  const hashes = all.map((name) => createHash('sha1').update(loadScript(name)).digest('hex'));
  const exist = (await client.script('EXISTS', ...(hashes as [string]))) as number[];
  return all.filter((_, i) => exist[i] === 1);
}
