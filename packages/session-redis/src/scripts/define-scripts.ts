import type { Redis } from 'ioredis';
import { loadScript, type PlaceName } from './script.loader.js';
import { Script } from './script.js';

type Argument = string | number;

/** Runs a script. */
type Run = (numberOfKeys: number, ...keysAndArguments: (Argument | readonly Argument[])[]) => Promise<unknown>;

/** A function for each script, which runs it on a connection. */
export type ScriptsByName<Name extends string> = Readonly<Record<Name, Run>>;

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
 * The source of each script by the name of its function. `family`: the folder of the scripts. `store`: see loadScript().
 */
export function loadScripts<Name extends string>(
  family: string,
  files: Readonly<Record<Name, string>>,
  store?: PlaceName,
): Record<Name, string> {
  const sources = Object.entries<string>(files).map(([name, file]) => [name, loadScript(`${family}/${file}`, store)]);
  return Object.fromEntries(sources) as Record<Name, string>;
}

/** Makes a function for each script, which runs it on a connection. */
export function defineScripts<Name extends string>(
  client: Redis,
  sources: Readonly<Record<Name, string>>,
): ScriptsByName<Name> {
  const functions = Object.entries<string>(sources).map(([name, lua]) => {
    const script = new Script(lua);
    const run: Run = (numberOfKeys, ...keysAndArguments) => script.run(client, numberOfKeys, keysAndArguments);
    return [name, run];
  });
  return Object.fromEntries(functions) as ScriptsByName<Name>;
}
