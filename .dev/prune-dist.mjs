// tsc leaves what it has compiled from files that are gone, and packages would be published with it.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const COMPILED = /\.(?:js|d\.ts)(?:\.map)?$/;

for (const folder of [
  'packages/session-core',
  'packages/session-redis',
  'packages/session-express',
  'packages/session-websockets',
  'libs/testing',
  'libs/test-infrastructure',
  'apps/demo',
]) {
  const root = fileURLToPath(new URL(`../${folder}/`, import.meta.url));
  for (const path of readdirSync(`${root}dist`, { encoding: 'utf8', recursive: true })) {
    const source = `${root}src/${path.replace(COMPILED, '.ts')}`;
    if (COMPILED.test(path) && !existsSync(source)) rmSync(`${root}dist/${path}`);
  }
}
