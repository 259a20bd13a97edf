// tsc copies nothing but TypeScript: puts the Redis scripts, and the C source of the clock that tests step, beside the compiled code
// that reads them.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

copy('packages/session-redis', 'scripts', '.lua');
copy('libs/test-infrastructure', 'redis', '.c');

function copy(packageFolder, folder, extension) {
  const root = fileURLToPath(new URL(`../${packageFolder}/`, import.meta.url));
  const [source, target] = [`${root}src/${folder}`, `${root}dist/${folder}`];
  const wanted = filesIn(source, extension);
  if (wanted.length === 0) throw new Error(`There is no ${extension} file to copy`);
  // What was copied from files that are gone would be published.
  for (const path of filesIn(target, extension).filter((each) => !wanted.includes(each))) rmSync(`${target}/${path}`);
  for (const path of wanted) copyChanged(`${source}/${path}`, `${target}/${path}`);
}

/** A file that is as it should be stays untouched: a program may be reading it while another one is built. */
function copyChanged(source, target) {
  if (existsSync(target) && readFileSync(target).equals(readFileSync(source))) return;
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(source, target);
}

function filesIn(folder, extension) {
  return readdirSync(folder, { encoding: 'utf8', recursive: true }).filter((path) => path.endsWith(extension));
}
