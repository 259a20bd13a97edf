// npm run test:matrix: the packages as they would be published, with everything they are said to work with. They are
// packed, and installed outside of the repository once for each folder of .dev/matrix. The application that lies there
// is compiled against them, as an ES module and as CommonJS, and its checks run on Express and on Fastify.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ensurePackages, ensureRedis } from './install.mjs';
import { capture, main, onStopSignal, root, runQuietly } from './processes.mjs';

const PACKAGES = ['packages/session-core', 'packages/session-redis', 'libs/testing'];
const APPLICATION = join(root, '.dev/matrix');
const MODULE_SYSTEMS = { module: 'ES module', commonjs: 'CommonJS' };
const ADAPTERS = { express: 'Express', fastify: 'Fastify' };
// Only for what would never end: it takes seconds.
const TIMEOUT = 180_000;
const PASSED_IN_TAP = /^# Subtest: .*\nok .*\n {2}---\n(?: {2}.*\n)*/gm;

const stopped = new AbortController();

await main(async () => {
  const { outputFile } = parseArgs({ options: { outputFile: { type: 'string' } } }).values;
  await ensurePackages();
  process.env.REDIS_SERVER = await ensureRedis();
  await runQuietly('npm', ['run', '--silent', 'build']);
  const folder = temporaryFolder();
  await runQuietly('npm', ['pack', ...PACKAGES.flatMap((path) => ['-w', path]), '--pack-destination', folder]);
  const folders = readdirSync(APPLICATION, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const rows = (await Promise.all(folders.map(({ name }) => checkVersions(name, folder)))).flat();
  const total = countsOf(rows);
  console.log(`\n${table(rows)}\n\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
  if (outputFile) await writeFile(outputFile, JSON.stringify(total));
  return total.failed === 0 ? 0 : 1;
});

/** Removed when this process ends, which a signal makes it do at once. */
function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'nest-session-matrix-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  onStopSignal(() => {
    stopped.abort();
    process.exit(1);
  });
  return folder;
}

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
  const tarballs = readdirSync(packed).filter((name) => name.endsWith('.tgz'));
  const options = ['--strict-peer-deps', '--prefer-offline', '--no-package-lock', '--no-audit', '--no-fund'];
  const { code, output } = await runIn(folder, 'npm', ['install', ...options, ...tarballs.map((name) => `../${name}`)]);
  return { output, checks: [check('npm installs the packages, and all peers fit', code === 0)] };
}

/** With our compiler, and everything else as it is installed there. */
async function compile(folder, type) {
  const isWanted = (path) => path === APPLICATION || /\.ts$|tsconfig\.json$/.test(path);
  await cp(APPLICATION, folder, { recursive: true, filter: isWanted });
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type }));
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  const { code, output } = await runIn(folder, process.execPath, [compiler]);
  return { output, checks: [check('the application compiles, all declarations checked', code === 0)] };
}

async function runChecks(folder, adapter) {
  const args = ['--test-reporter=tap', 'checks.js'];
  const { code, output } = await runIn(folder, process.execPath, args, { ADAPTER: adapter });
  const lines = output.matchAll(/^(ok|not ok) \d+ - (.*?)( # SKIP.*)?$/gm);
  const checks = [...lines].map(([, result, name, skip]) => ({ name, result: skip ? 'skipped' : result }));
  // The reporter writes its plan last.
  const hasEnded = code !== null && /^1\.\.\d+$/m.test(output);
  return { output, checks: [...checks, check('the process ends by itself', hasEnded)] };
}

async function runIn(folder, command, args, env = {}) {
  const { code, output } = await capture(command, args, {
    cwd: folder,
    env: { ...process.env, NO_COLOR: '1', ...env },
    signal: stopped.signal,
    timeout: TIMEOUT,
    // npm goes on writing for a while after any other.
    killSignal: 'SIGKILL',
  });
  return { code, output: code === null ? `${output}\nNot ended after ${TIMEOUT} ms, or killed.` : output };
}

function check(name, isOk) {
  return { name, result: isOk ? 'ok' : 'not ok' };
}

/** Prints what was found, and why where something is not right. */
function report(combination, { checks, output }) {
  const row = { combination, checks };
  const lines = checks.map(({ name, result }) => `${result} - ${name}`);
  const reasons = countsOf([row]).failed > 0 ? [output.replace(PASSED_IN_TAP, '')] : [];
  console.log([`\n== ${combination.join(' ')}`, ...lines, ...reasons].join('\n'));
  return row;
}

function countsOf(rows) {
  const results = rows.flatMap(({ checks }) => checks).map(({ result }) => result);
  const count = (wanted) => results.filter((result) => result === wanted).length;
  return { passed: count('ok'), failed: count('not ok'), skipped: count('skipped') };
}

function table(rows) {
  const lines = rows.map((row) => {
    const { passed, failed } = countsOf([row]);
    return [...row.combination, `${passed} passed`, `${failed} failed`];
  });
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  return lines.map((line) => line.map((cell, column) => cell.padEnd(widths[column])).join('  ')).join('\n');
}
