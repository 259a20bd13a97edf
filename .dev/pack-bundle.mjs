// Called by npm in the folder of a package, before and after `npm pack` reads it: what is packed is the bundle, which is
// in the place of what tsc has compiled until then.
import { cpSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { COMPILED, restoreCompiled } from './compiled.mjs';
import { main } from './processes.mjs';
import { temporaryFolder } from './temporary-folder.mjs';

await main(async () => {
  const folder = process.cwd();
  // Also after a `prepack` that was killed.
  restoreCompiled(folder);
  if (process.env.npm_lifecycle_event === 'postpack') return 0;
  const { bundlePackage } = await import('./bundle.mjs');
  const target = temporaryFolder('bundle');
  await bundlePackage(folder, target);
  renameSync(join(folder, 'dist'), join(folder, COMPILED));
  cpSync(join(target, 'dist'), join(folder, 'dist'), { recursive: true });
  return 0;
});
