import { LUA_SOURCES } from './lua-sources.js';

/** Where scripts note when something is due. */
export type PlaceName = 'buckets' | 'sorted-set';

const INCLUDE = /^( *)-- include: (.+)$/gm;

/** The library file in which alone scripts differ by the option `expirations`. */
const PLACE = 'place';

/**
 * The source of a script such as `session/touch-session`, from the `.lua` file of that name beside this module. Each
 * `-- include:` line is replaced by the library files that it names, and each of them begins with those that it needs
 * itself. A library file has nothing but named functions and constants.
 *
 * What is included at the margin is there from then on, once. A call pays for each function that it creates, so
 * functions for rare cases are included inside the block of that case, and are there until its end.
 *
 * `store`: where the script is to note the end of a session: `place` is then `place-in-buckets` or
 * `place-in-sorted-set`. `lua-sources.ts` is written out of the `.lua` files by `.dev/embed-scripts.mjs`.
 */
export function loadScript(name: string, store: PlaceName = 'buckets'): string {
  return withIncludes(sourceOf(name), store, new Set());
}

/** `known`: the library files that are there already. */
function withIncludes(source: string, store: PlaceName, known: Set<string>): string {
  return source.replace(INCLUDE, (_, margin: string, names: string) => {
    const here = margin === '' ? known : new Set(known);
    const texts = names.split(', ').map((name) => libraryText(name, store, here));
    return texts.filter((text) => text !== '').join('\n');
  });
}

function libraryText(name: string, store: PlaceName, known: Set<string>): string {
  if (known.has(name)) return '';
  known.add(name);
  return withIncludes(sourceOf(`library/${name === PLACE ? `${PLACE}-in-${store}` : name}`), store, known);
}

function sourceOf(name: string): string {
  const source = LUA_SOURCES[name];
  if (source === undefined) throw new Error(`There is no Redis script ${JSON.stringify(name)}`);
  return source;
}
