import { readFileSync } from 'node:fs';

const INCLUDE = /^-- include: (.+)$/m;

/**
 * The source of a script such as `session/save-session`. Its includes, and theirs, replace the `-- include:` line. The
 * `.lua` files are beside this module, in the sources and in the published package.
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
