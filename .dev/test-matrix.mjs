// npm run test:matrix: the packages as they would be published, with everything they are said to work with. They are
// packed, and installed outside of the repository once for each folder of docs/test/works-with/matrix. The application
// that lies there is compiled against them, as an ES module and as CommonJS, and its checks run on Express and on
// Fastify. Words choose folders: `npm run test:matrix -- nest-11`.
import { readdirSync } from 'node:fs';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { check, conclude, countsOf, report } from './checks.mjs';
import { compileIn, runChecksIn } from './compiled-application.mjs';
import { entryPoints } from './entry-points.mjs';
import { installPacked, packPackages, TEST_INFRASTRUCTURE } from './packed-packages.mjs';
import { main, root } from './processes.mjs';

const APPLICATION = join(root, 'docs/test/works-with/matrix');
const MODULE_SYSTEMS = { module: 'ES module', commonjs: 'CommonJS' };
const ADAPTERS = { express: 'Express', fastify: 'Fastify' };

await main(async () => {
  const { values, positionals: words } = parseArgs({
    options: { outputFile: { type: 'string' } },
    allowPositionals: true,
  });
  const packed = await packPackages(TEST_INFRASTRUCTURE);
  const names = readdirSync(APPLICATION, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() && words.every((word) => entry.name.includes(word)) ? [entry.name] : [],
  );
  if (names.length === 0)
    throw new Error(`No folder of ${APPLICATION} has all of these words in its name: ${words.join(' ')}`);
  const rows = await Promise.all(names.map((name) => checkVersions(name, packed)));
  return conclude(rows.flat(), values.outputFile);
});

/** Resolves to the rows of the table: what was tried, and its checks. */
async function checkVersions(versions, packed) {
  const folder = join(packed, versions);
  await cp(join(APPLICATION, versions), folder, { recursive: true });
  const { dependencies } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const used = `NestJS ${dependencies['@nestjs/core']}, ioredis ${dependencies.ioredis}`;
  const rows = [report([used, '', 'npm install'], await install(folder, packed))];
  if (countsOf(rows).failed > 0) return rows;
  for (const [type, moduleSystem] of Object.entries(MODULE_SYSTEMS)) {
    const program = join(folder, type);
    rows.push(report([used, moduleSystem, 'types'], await compile(program, type)));
    for (const [adapter, name] of Object.entries(ADAPTERS)) {
      rows.push(report([used, moduleSystem, name], await runChecks(program, adapter)));
    }
  }
  return rows;
}

async function install(folder, packed) {
  const { code, output } = await installPacked(folder, packed);
  return { output, checks: [check('npm installs the packages, and all peers fit', code === 0)] };
}

async function compile(folder, type) {
  const isWanted = (path) => path === APPLICATION || /\.ts$|tsconfig\.json$/.test(path);
  await cp(APPLICATION, folder, { recursive: true, filter: isWanted });
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type }));
  return compileIn(folder);
}

function runChecks(folder, adapter) {
  const names = entryPoints().map(({ name }) => name);
  return runChecksIn(folder, { ADAPTER: adapter, ENTRY_POINTS: names.join() });
}
