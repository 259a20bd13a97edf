// npm run test:examples: each application of `examples` as somebody has it who has installed the packages. It is copied
// out of the repository, the packed packages are installed, and its scripts run: `types`, and all that begin with
// `test`. The recipes of the documentation are one more: their tests run with the packed packages.
import { readdirSync } from 'node:fs';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { check, conclude, countsOf, report, testsOf } from './checks.mjs';
import { installPacked, packPackages } from './packed-packages.mjs';
import { main, root } from './processes.mjs';
import { runIn } from './temporary-folder.mjs';

const EXAMPLES = join(root, 'examples');
/** What a project of the Nest CLI has, before anything is installed for a recipe. */
const OF_NEST_NEW = ['@nestjs/common', '@nestjs/core', '@nestjs/platform-express', 'reflect-metadata', 'rxjs'];
const TYPES_OF_NEST_NEW = ['@types/express', '@types/node'];

await main(async () => {
  const { outputFile } = parseArgs({ options: { outputFile: { type: 'string' } } }).values;
  const packed = await packPackages();
  const rows = [];
  for (const { name } of readdirSync(EXAMPLES, { withFileTypes: true }).filter((entry) => entry.isDirectory())) {
    rows.push(...(await checkExample(name, packed)));
  }
  rows.push(...(await checkRecipes(packed)));
  return conclude(rows, outputFile);
});

async function checkExample(name, packed) {
  const folder = join(packed, name);
  await cp(join(EXAMPLES, name), folder, { recursive: true, filter: (path) => !path.endsWith('/node_modules') });
  const rows = [
    report([name, 'npm install'], await result('the packages and all peers fit', installPacked(folder, packed))),
  ];
  if (countsOf(rows).failed > 0) return rows;
  const { scripts } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  for (const script of Object.keys(scripts).filter((each) => each === 'types' || each.startsWith('test'))) {
    const run = runIn(folder, 'npm', ['run', '--silent', script]);
    rows.push(report([name, `npm run ${script}`], await result('passes', run)));
  }
  return rows;
}

async function checkRecipes(packed) {
  const folder = join(packed, 'recipes');
  await mkdir(folder);
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  const install = installPacked(folder, packed, ...(await packagesOfRecipes()));
  const rows = [report(['recipes', 'npm install'], await result('the packages and all peers fit', install))];
  if (countsOf(rows).failed > 0) return rows;
  const file = join(folder, 'report.json');
  const args = [
    '.dev/test.mjs',
    '--testRegex=/test/recipes\\.chaos\\.ts$',
    '--maxWorkers=1',
    '--json',
    `--outputFile=${file}`,
  ];
  const { code, output } = await runIn(root, process.execPath, args, {
    RECIPES_PACKAGES: join(folder, 'node_modules'),
  });
  const tests = testsOf(JSON.parse(await readFile(file, 'utf8').catch(() => '{"testResults":[]}')));
  const checks = [...tests, check('the run passes', code === 0)];
  return [...rows, report(['recipes', 'npm test'], { output, checks })];
}

/** What the first page says to install for the recipes, in the versions that this repository has. */
async function packagesOfRecipes() {
  const page = await readFile(join(root, 'docs/getting-started.md'), 'utf8');
  const told = [...page.matchAll(/^npm install (.+)$/gm)].flatMap(([, names]) => names.split(' '));
  const { packages } = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8'));
  const others = told.filter((name) => !name.startsWith('@nest-session/'));
  const names = new Set([...OF_NEST_NEW, ...TYPES_OF_NEST_NEW, ...others]);
  return [...names].map((name) => `${name}@${packages[`node_modules/${name}`].version}`);
}

async function result(expected, run) {
  const { code, output } = await run;
  return { output, checks: [check(expected, code === 0)] };
}
