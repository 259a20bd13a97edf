// Where what tsc has compiled is while npm packs a package.
import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

export const COMPILED = 'dist.compiled';

/** Puts it back into `dist`; without effect where it is. */
export function restoreCompiled(folder) {
  if (!existsSync(join(folder, COMPILED))) return;
  rmSync(join(folder, 'dist'), { recursive: true, force: true });
  renameSync(join(folder, COMPILED), join(folder, 'dist'));
}
