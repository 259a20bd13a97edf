// npm run test:examples: each application of `examples` as somebody has it who has installed the packages. It is copied
// out of the repository, the packed packages are installed, and its scripts run: `types`, and all that begin with `test`.
import { readdirSync } from 'node:fs';
import { cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { check, conclude, countsOf, report } from './checks.mjs';
import { installPacked, packPackages } from './packed-packages.mjs';
import { main, root } from './processes.mjs';
import { runIn } from './temporary-folder.mjs';

const EXAMPLES = join(root, 'examples');

await main(async () => {
  const { outputFile } = parseArgs({ options: { outputFile: { type: 'string' } } }).values;
  const packed = await packPackages();
  const rows = [];
  for (const { name } of readdirSync(EXAMPLES, { withFileTypes: true }).filter((entry) => entry.isDirectory())) {
    rows.push(...(await checkExample(name, packed)));
  }
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

async function result(expected, run) {
  const { code, output } = await run;
  return { output, checks: [check(expected, code === 0)] };
}
