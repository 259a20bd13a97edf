// tsc copies nothing but TypeScript: puts the Redis scripts, and the C source of the test kit, beside the compiled code
// that reads them.
import { cpSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

copy('packages/session-redis', 'scripts', '.lua');
copy('libs/testing', 'redis', '.c');

function copy(packageFolder, folder, extension) {
  const root = fileURLToPath(new URL(`../${packageFolder}/`, import.meta.url));
  const isWanted = (path) => !path.includes('.') || path.endsWith(extension);
  const target = `${root}dist/${folder}`;
  cpSync(`${root}src/${folder}`, target, { recursive: true, filter: (source) => isWanted(source.slice(root.length)) });
  if (!readdirSync(target).some((name) => name.endsWith(extension))) throw new Error(`No ${extension} file was copied`);
}
