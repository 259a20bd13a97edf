import { readFileSync } from 'node:fs';

const INCLUDE = /^-- include: (.+)$/m;

/**
 * The source of a script, such as `session/save-session`, with its includes, and theirs, in the place of the
 * `-- include:` line. The `.lua` files stand beside this module, in the sources and in the published package alike.
 */
export function loadScript(name: string): string {
  const source = readFileSync(new URL(`./${name}.lua`, import.meta.url), 'utf8');
  return source.replace(INCLUDE, (_, names: string) =>
    names
      .split(', ')
      .map((include) => loadScript(`includes/${include}`))
      .join('\n'),
  );
}
