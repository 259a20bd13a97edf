// What can be imported from the published packages.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './processes.mjs';

/**
 * The entry points as the `exports` of the package.json files have them: the name that is imported, the folder of the
 * package, the compiled types and the source.
 */
export function entryPoints() {
  return ['packages', 'libs'].flatMap((parent) =>
    readdirSync(join(root, parent)).flatMap((name) => entriesOf(join(root, parent, name))),
  );
}

function entriesOf(folder) {
  const { name, private: isPrivate, exports = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  if (isPrivate) return [];
  return Object.entries(exports)
    .filter(([, target]) => target.types)
    .map(([path, { types }]) => ({
      name: join(name, path),
      folder,
      types: join(folder, types),
      source: join(folder, types.replace('./dist/', 'src/').replace(/\.d\.ts$/, '.ts')),
    }));
}
