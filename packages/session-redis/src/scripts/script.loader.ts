import { readFileSync } from 'node:fs';

const INCLUDE = /^-- include: (.+)$/m;

/**
 * The source of a script, with its includes in the place of its `-- include:` line. The `.lua` files stand beside this
 * module, in the sources and in the published package alike.
 */
export function loadScript(name: string): string {
  return read(name).replace(INCLUDE, (_, names: string) =>
    names
      .split(', ')
      .map((include) => read(`includes/${include}`))
      .join('\n'),
  );
}

function read(name: string): string {
  return readFileSync(new URL(`./${name}.lua`, import.meta.url), 'utf8');
}
