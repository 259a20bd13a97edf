import { LUA_SOURCES } from './lua-sources.js';

const INCLUDE = /^ *-- include: (.+)$/gm;

/**
 * The source of a script such as `session/save-session`, from the `.lua` file of that name beside this module. Each
 * `-- include:` line is replaced by the text of the includes that it names: functions, or a step that several scripts have
 * in common. A call pays for each function that it creates, so functions for rare cases are included inside the `if` of
 * that case. `lua-sources.ts` is written out of the `.lua` files by `.dev/embed-scripts.mjs`.
 */
export function loadScript(name: string): string {
  const source = LUA_SOURCES[name];
  if (source === undefined) throw new Error(`There is no Redis script ${JSON.stringify(name)}`);
  return source.replace(INCLUDE, (_, names: string) =>
    names
      .split(', ')
      .map((include) => loadScript(`includes/${include}`))
      .join('\n'),
  );
}
