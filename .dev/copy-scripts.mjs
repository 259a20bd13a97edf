// tsc copies nothing but TypeScript: puts the Redis scripts, and the C source of the test kit, beside the compiled code
// that reads them.
import { cpSync, readdirSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

copy('packages/session-redis', 'scripts', '.lua');
copy('libs/testing', 'redis', '.c');

function copy(packageFolder, folder, extension) {
  const root = fileURLToPath(new URL(`../${packageFolder}/`, import.meta.url));
  const isWanted = (path) => !path.includes('.') || path.endsWith(extension);
  const target = `${root}dist/${folder}`;
  // What was copied from files that are gone would be published.
  for (const path of filesIn(target, extension)) rmSync(`${target}/${path}`);
  cpSync(`${root}src/${folder}`, target, { recursive: true, filter: (source) => isWanted(source.slice(root.length)) });
  if (filesIn(target, extension).length === 0) throw new Error(`No ${extension} file was copied`);
}

function filesIn(folder, extension) {
  return readdirSync(folder, { encoding: 'utf8', recursive: true }).filter((path) => path.endsWith(extension));
}
