// What can be imported from the published packages.
import { join } from 'node:path';
import { root } from './processes.mjs';
import { publishedPackages } from './workspaces.mjs';

/** Without those that packages of ours share: nothing is promised of them. */
export function publicEntryPoints() {
  return entryPoints().filter(({ name }) => !name.endsWith('/internal'));
}

/**
 * The entry points as the `exports` of the package.json files have them: the name that is imported, the folder of the
 * package, the compiled types and the source.
 */
export function entryPoints() {
  return publishedPackages().flatMap(({ folder, manifest: { name, exports } }) =>
    Object.entries(exports)
      .filter(([, target]) => target.import)
      .map(
        ([
          path,
          {
            import: { types },
          },
        ]) => ({
          name: join(name, path),
          folder: join(root, folder),
          types: join(root, folder, types),
          source: join(root, folder, types.replace('./dist/', 'src/').replace(/\.d\.ts$/, '.ts')),
        }),
      ),
  );
}
