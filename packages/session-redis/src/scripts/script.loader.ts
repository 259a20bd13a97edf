import type { ExpirationStoreName } from '../configuration/expirations.options.js';
import { LUA_SOURCES } from './lua-sources.js';

const INCLUDE = /^ *-- include: (.+)$/gm;

/** The include that decides where a session stands: the only text in which scripts differ by the option `expirations`. */
const PLACE = 'place';

/**
 * The source of a script such as `session/save-session`, from the `.lua` file of that name beside this module. Each
 * `-- include:` line is replaced by the text of the includes that it names: functions, or a step that several scripts have
 * in common. A call pays for each function that it creates, so functions for rare cases are included inside the `if` of
 * that case. `lua-sources.ts` is written out of the `.lua` files by `.dev/embed-scripts.mjs`.
 *
 * `store`: where the script is to note the end of a session. `place` is then `place-in-buckets` or `place-in-sorted-set`.
 */
export function loadScript(name: string, store: ExpirationStoreName = 'buckets'): string {
  const source = LUA_SOURCES[name];
  if (source === undefined) throw new Error(`There is no Redis script ${JSON.stringify(name)}`);
  return source.replace(INCLUDE, (_, names: string) =>
    names
      .split(', ')
      .map((include) => loadScript(`includes/${include === PLACE ? `${PLACE}-in-${store}` : include}`, store))
      .join('\n'),
  );
}
