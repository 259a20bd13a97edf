// npm run test:orms: the packages as they would be published, beside each ORM of docs/test/works-with/orms. They are
// packed, and installed outside of the repository with what the folder of the ORM asks for. The application that lies
// there is compiled with the module of that folder, and its checks run. Words choose folders: `npm run test:orms --
// typeorm`.
import { readdirSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { check, conclude, countsOf, report } from './checks.mjs';
import { compileIn, runChecksIn } from './compiled-application.mjs';
import { installPacked, packPackages } from './packed-packages.mjs';
import { main, root } from './processes.mjs';
import { runIn } from './temporary-folder.mjs';

const APPLICATION = join(root, 'docs/test/works-with/orms');

await main(async () => {
  const { values, positionals: words } = parseArgs({
    options: { outputFile: { type: 'string' } },
    allowPositionals: true,
  });
  const names = readdirSync(APPLICATION, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() && words.every((word) => entry.name.includes(word)) ? [entry.name] : [],
  );
  if (names.length === 0)
    throw new Error(`No folder of ${APPLICATION} has all of these words in its name: ${words.join(' ')}`);
  const packed = await packPackages();
  const rows = [];
  for (const name of names) rows.push(...(await checkOrm(name, packed)));
  return conclude(rows, values.outputFile);
});

/** Resolves to the rows of the table: what was done, and its checks. Nothing is done after a step that failed. */
async function checkOrm(name, packed) {
  const folder = join(packed, name);
  const isOfAll = (path) => path === APPLICATION || /\.(ts|json)$/.test(path);
  await cp(APPLICATION, folder, { recursive: true, filter: isOfAll });
  await cp(join(APPLICATION, name), folder, { recursive: true });
  const steps = {
    'npm install': () => result('npm installs the packages, and all peers fit', installPacked(folder, packed)),
    'npm run generate': () => result('its code is generated, if any', generateIn(folder)),
    types: () => compileIn(folder),
    'requests and events': () => runChecksIn(folder),
  };
  const rows = [];
  for (const [title, run] of Object.entries(steps)) {
    if (countsOf(rows).failed === 0) rows.push(report([name, title], await run()));
  }
  return rows;
}

function generateIn(folder) {
  return runIn(folder, 'npm', ['run', '--silent', '--if-present', 'generate']);
}

async function result(expected, run) {
  const { code, output } = await run;
  return { output, checks: [check(expected, code === 0)] };
}
