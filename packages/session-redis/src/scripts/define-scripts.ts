import type { Redis } from 'ioredis';
import { loadScript, type PlaceName } from './script.loader.js';

type Argument = string | number;

/** ioredis flattens its arguments, so a list that is at hand need not be copied. */
type Run = (numberOfKeys: number, ...keysAndArguments: (Argument | readonly Argument[])[]) => Promise<unknown>;

/** A connection with a command for each script. */
export type ScriptedRedis<Name extends string> = Redis & Record<Name, Run>;

/** The scripts of a family on a connection, which are typed functions. */
export type ScriptsOn<Scripts> = (client: Redis) => Scripts;

/** Makes the scripts once for each connection. */
export function scriptsOn<Scripts>(make: ScriptsOn<Scripts>): ScriptsOn<Scripts> {
  const made = new WeakMap<Redis, Scripts>();
  return (client) => {
    const known = made.get(client);
    if (known) return known;
    const scripts = make(client);
    made.set(client, scripts);
    return scripts;
  };
}

/**
 * The source of each script by the name of its command. `family`: the folder of the scripts. `store`: see loadScript().
 */
export function loadScripts<Name extends string>(
  family: string,
  files: Readonly<Record<Name, string>>,
  store?: PlaceName,
): Record<Name, string> {
  const sources = Object.entries<string>(files).map(([name, file]) => [name, loadScript(`${family}/${file}`, store)]);
  return Object.fromEntries(sources) as Record<Name, string>;
}

/**
 * Adds a command for each script to a connection. ioredis sends EVAL with its first call on each socket, and after a
 * NOSCRIPT, and else EVALSHA: no call needs a second round trip, so nothing loads the scripts in advance.
 */
export function defineScripts<Name extends string>(
  client: Redis,
  sources: Readonly<Record<Name, string>>,
): ScriptedRedis<Name> {
  for (const [name, lua] of Object.entries<string>(sources)) client.defineCommand(name, { lua });
  return client as ScriptedRedis<Name>;
}
