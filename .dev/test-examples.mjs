// npm run test:examples: each application of `examples` as somebody has it who has installed the packages. It is copied
// out of the repository, has the packages that it asks for and no others, and its scripts run: `types`, and all that
// begin with `test`. The recipes of the documentation are one more: their tests run with the packed packages. All of
// them share one installation, which takes longer than most of what is done with it.
import { readdirSync } from 'node:fs';
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { check, conclude, countsOf, report, testsOf } from './checks.mjs';
import { installPacked, packPackages } from './packed-packages.mjs';
import { main, root } from './processes.mjs';
import { IN_MEMORY, runIn, temporaryFolder } from './temporary-folder.mjs';

const EXAMPLES = join(root, 'examples');
/** What a project of the Nest CLI has, before anything is installed for a recipe. */
const OF_NEST_NEW = ['@nestjs/common', '@nestjs/core', '@nestjs/platform-express', 'reflect-metadata', 'rxjs'];
const TYPES_OF_NEST_NEW = ['@types/express', '@types/node'];

await main(async () => {
  const { outputFile } = parseArgs({ options: { outputFile: { type: 'string' } } }).values;
  const packed = await packPackages();
  const names = readdirSync(EXAMPLES, { withFileTypes: true }).flatMap((each) => (each.isDirectory() ? each.name : []));
  const examples = await Promise.all(names.map(readExample));
  const folder = join(packed, 'installed');
  const rows = [await install(folder, packed, [...examples.map(({ asked }) => asked), await packagesOfRecipes()])];
  if (countsOf(rows).failed === 0) {
    const packages = join(folder, 'node_modules');
    for (const example of examples) rows.push(...(await checkExample(example, join(packed, example.name), packages)));
    rows.push(await checkRecipes(join(packed, 'report.json'), packages));
  }
  return conclude(rows, outputFile);
});

async function readExample(name) {
  const manifest = JSON.parse(await readFile(join(EXAMPLES, name, 'package.json'), 'utf8'));
  const { scripts, dependencies, devDependencies } = manifest;
  return { name, scripts, asked: { ...dependencies, ...devDependencies } };
}

/** Installs the packed packages, and the others that are asked for. */
async function install(folder, packed, lists) {
  const versions = new Map();
  for (const [name, version] of lists.flatMap(Object.entries)) {
    const other = versions.get(name) ?? version;
    if (other !== version) throw new Error(`One installation cannot have ${name} ${version} and ${other}`);
    versions.set(name, version);
  }
  const others = [...versions].flatMap(([name, version]) => (isOurs(name) ? [] : [`${name}@${version}`]));
  await mkdir(folder);
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  const run = installPacked(folder, packed, ...others);
  return report(['examples and recipes', 'npm install'], await result('the packages and all peers fit', run));
}

async function checkExample({ name, scripts, asked }, folder, packages) {
  await cp(join(EXAMPLES, name), folder, { recursive: true, filter: (path) => !path.endsWith('/node_modules') });
  for (const each of ['.bin', ...Object.keys(asked)]) {
    const link = join(folder, 'node_modules', each);
    await mkdir(dirname(link), { recursive: true });
    await symlink(join(packages, each), link);
  }
  // No test waits for thousands of small files to reach a disk.
  const env = { TMPDIR: temporaryFolder('examples', IN_MEMORY) };
  const rows = [];
  for (const script of Object.keys(scripts).filter((each) => each === 'types' || each.startsWith('test'))) {
    const run = runIn(folder, 'npm', ['run', '--silent', script], env);
    rows.push(report([name, `npm run ${script}`], await result('passes', run)));
  }
  return rows;
}

async function checkRecipes(file, packages) {
  const args = [
    '.dev/test.mjs',
    '--testRegex=/test/recipes\\.chaos\\.ts$',
    '--maxWorkers=1',
    '--json',
    `--outputFile=${file}`,
  ];
  const { code, output } = await runIn(root, process.execPath, args, { RECIPES_PACKAGES: packages });
  const tests = testsOf(JSON.parse(await readFile(file, 'utf8').catch(() => '{"testResults":[]}')));
  return report(['recipes', 'npm test'], { output, checks: [...tests, check('the run passes', code === 0)] });
}

/** What the first page says to install for the recipes, in the versions that this repository has. */
async function packagesOfRecipes() {
  const page = await readFile(join(root, 'docs/getting-started.md'), 'utf8');
  const told = [...page.matchAll(/^npm install (.+)$/gm)].flatMap(([, names]) => names.split(' '));
  const { packages } = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8'));
  const names = [...OF_NEST_NEW, ...TYPES_OF_NEST_NEW, ...told.filter((name) => !isOurs(name))];
  return Object.fromEntries(names.map((name) => [name, packages[`node_modules/${name}`].version]));
}

function isOurs(name) {
  return name.startsWith('@nest-session/');
}

async function result(expected, run) {
  const { code, output } = await run;
  return { output, checks: [check(expected, code === 0)] };
}
