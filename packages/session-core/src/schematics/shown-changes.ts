import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Tree } from '@angular-devkit/schematics';

/** The changed lines of each changed file, as `diff` shows them. */
export function shownChanges(tree: Tree): string {
  const changed = tree.actions.flatMap((action) => ('content' in action ? [action] : []));
  return changed
    .map(({ path, content }) => `--- ${path.slice(1)}\n${diff(before(path), content.toString())}`)
    .join('\n');
}

function before(path: string): string {
  const file = join(process.cwd(), path);
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

/** Our changes only add and replace single lines, so each old line is looked for behind the one before it. */
function diff(old: string, now: string): string {
  const rest = now.split('\n');
  const shown: string[] = [];
  for (const line of old === '' ? [] : old.split('\n')) {
    const at = rest.indexOf(line);
    if (at === -1) shown.push(`- ${line}`);
    else
      shown.push(
        ...rest
          .splice(0, at + 1)
          .slice(0, -1)
          .map((each) => `+ ${each}`),
      );
  }
  return [...shown, ...rest.filter((line, i) => line || i < rest.length - 1).map((line) => `+ ${line}`)].join('\n');
}
