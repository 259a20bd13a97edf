// npm run build: compiles every package and the demo into their `dist` folders. What npm gets is made of them by
// `bundle.mjs`.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { restoreCompiled } from './compiled.mjs';
import embedScripts from './embed-scripts.mjs';
import { main, root, run } from './processes.mjs';
import { workspaces } from './workspaces.mjs';
import { copyChanged } from './write-changed.mjs';

const COMPILED = /\.(?:js|d\.ts)(?:\.map)?$/;
const NOT_COMPILED = /(?:^|\/)(?:\.tsbuildinfo|program\.clock\.c)$/;

await main(async () => {
  embedScripts();
  const all = workspaces();
  for (const { folder } of all) restoreCompiled(join(root, folder));
  const code = await run('node_modules/.bin/tsc', ['-b', ...all.map(({ folder }) => folder)]);
  if (code !== 0) return code;
  for (const { folder } of all) removeLeftovers(join(root, folder));
  copyClock();
  return 0;
});

/** tsc leaves what it has compiled from files that are gone, and packages would be published with it. */
function removeLeftovers(folder) {
  const files = readdirSync(`${folder}/dist`, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
  for (const path of files.map(({ parentPath, name }) => join(parentPath, name).slice(`${folder}/dist/`.length))) {
    const source = path.replace(COMPILED, '.ts');
    const isWanted = NOT_COMPILED.test(path) || (COMPILED.test(path) && existsSync(`${folder}/src/${source}`));
    if (!isWanted) rmSync(`${folder}/dist/${path}`);
  }
}

/**
 * tsc copies nothing but TypeScript: the C source of the clock that tests step belongs beside the module that reads it.
 */
function copyClock() {
  const [source, target] = ['src', 'dist'].map((each) => `libs/test-infrastructure/${each}/time/program.clock.c`);
  copyChanged(join(root, source), join(root, target));
}
