import { readFileSync } from 'node:fs';

const INCLUDE = /^ *-- include: (.+)$/gm;

/**
 * The source of a script such as `session/save-session`. Each `-- include:` line is replaced by the text of the includes
 * that it names: functions, or a step that several scripts have in common. A call pays for each function that it
 * creates, so functions for rare cases are included inside the `if` of that case. The `.lua` files are beside this
 * module, in the sources and in the published package.
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
