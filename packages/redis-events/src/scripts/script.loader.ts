/** The text of each `.lua` file by its name below the folder of scripts, such as `library/clock`, without `.lua`. */
export type ScriptSources = Readonly<Record<string, string>>;

const INCLUDE = /^( *)-- include: (.+)$/gm;

/**
 * A script such as `stream/trim-events` out of the sources of its package and of those below it, whose library files it
 * may include. Each `-- include:` line is replaced by the library files that it names, and each of them begins with
 * those that it needs itself. A library file has nothing but named functions and constants.
 *
 * What is included at the margin is there from then on, once. A call pays for each function that it creates, so
 * functions for rare cases are included inside the block of that case, and are there until its end.
 *
 * Each package has its sources in `lua-sources.ts`, which `.dev/embed-scripts.mjs` writes out of its `.lua` files.
 */
export function loadScript(sources: ScriptSources, name: string): string {
  return withIncludes(sources, sourceOf(sources, name), new Set());
}

/** `known`: the library files that are there already. */
function withIncludes(sources: ScriptSources, source: string, known: Set<string>): string {
  return source.replace(INCLUDE, (_, margin: string, names: string) => {
    const here = margin === '' ? known : new Set(known);
    const texts = names.split(', ').map((name) => libraryText(sources, name, here));
    return texts.filter((text) => text !== '').join('\n');
  });
}

function libraryText(sources: ScriptSources, name: string, known: Set<string>): string {
  if (known.has(name)) return '';
  known.add(name);
  return withIncludes(sources, sourceOf(sources, `library/${name}`), known);
}

function sourceOf(sources: ScriptSources, name: string): string {
  const source = sources[name];
  if (source === undefined) throw new Error(`There is no Redis script ${JSON.stringify(name)}`);
  return source;
}
