// npm run api: writes the public surface of each entry point that is for applications to docs/evidence/api, as a report
// that a change of the surface shows up in. With --check: fails where a report is not what the surface is.
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Extractor, ExtractorConfig } from '@microsoft/api-extractor';
import { publicEntryPoints } from './entry-points.mjs';
import { main, root, runQuietly } from './processes.mjs';
import { temporaryFolder } from './temporary-folder.mjs';

const REPORTS = join(root, 'docs/evidence/api');
const check = process.argv.includes('--check');

await main(async () => {
  await runQuietly('npm', ['run', '--silent', 'build']);
  mkdirSync(REPORTS, { recursive: true });
  const temporary = temporaryFolder('api');
  const entries = publicEntryPoints();
  const problems = entries.flatMap((entry) => report(entry, temporary));
  const known = new Set(entries.map(reportName));
  for (const name of readdirSync(REPORTS).filter((each) => !known.has(each))) {
    if (check) problems.push(`docs/evidence/api/${name}: there is no such entry point any more.`);
    else rmSync(join(REPORTS, name));
  }
  if (problems.length === 0) return 0;
  console.error(
    `${problems.join('\n\n')}\n\nIf this change of the public surface is meant, run npm run api and commit.`,
  );
  return 1;
});

function reportName({ name }) {
  return `${name.replace('@nest-session/', '').replace('/', '-')}.api.md`;
}

/** Writes the report of an entry point, or says what is different from it. */
function report(entry, temporary) {
  const problems = [];
  const name = reportName(entry);
  const silent = { default: { logLevel: 'none' } };
  const config = ExtractorConfig.prepare({
    configObject: {
      projectFolder: entry.folder,
      mainEntryPointFilePath: entry.types,
      newlineKind: 'lf',
      compiler: { tsconfigFilePath: join(entry.folder, 'tsconfig.json') },
      apiReport: { enabled: true, reportFolder: REPORTS, reportTempFolder: temporary, reportFileName: name },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: { extractorMessageReporting: silent, tsdocMessageReporting: silent },
    },
    packageJsonFullPath: join(entry.folder, 'package.json'),
  });
  Extractor.invoke(config, {
    localBuild: !check,
    messageCallback: (message) => {
      if (message.category === 'Compiler') problems.push(message.formatMessageWithoutLocation());
      message.handled = true;
    },
  });
  return check ? [...problems, ...differences(name, temporary)] : problems;
}

/** The lines that only one of the two has: enough to see what has changed. */
function differences(name, temporary) {
  const committed = linesOf(join(REPORTS, name));
  const actual = linesOf(join(temporary, name));
  const gone = committed.filter((line) => !actual.includes(line)).map((line) => `- ${line}`);
  const come = actual.filter((line) => !committed.includes(line)).map((line) => `+ ${line}`);
  const isSame = committed.join('\n') === actual.join('\n');
  return isSame ? [] : [[`docs/evidence/api/${name} is not the public surface:`, ...gone, ...come].join('\n')];
}

function linesOf(path) {
  try {
    return readFileSync(path, 'utf8').split('\n');
  } catch {
    return [];
  }
}
