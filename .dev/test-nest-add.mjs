// npm run test:nest-add: `nest add @nest-session/core` in applications as their authors have them. The Nest CLI
// generates each outside of the repository, its package manager installs the packed packages, and nest add runs. Then
// nothing is edited any more: it is built, its own test command runs, and it is started with the Redis of its
// compose.yaml. Words choose applications by their names.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { parse } from 'yaml';
import { STARTERS } from '../docs/test/works-with/applications/starters.mjs';
import { check, conclude, report } from './checks.mjs';
import { programOf, withNode } from './other-versions.mjs';
import { packPackages } from './packed-packages.mjs';
import { main } from './processes.mjs';
import { runIn } from './temporary-folder.mjs';

/** Those that nest add needs, of which the others are no business of these applications. */
const OURS = ['core', 'redis', 'redis-events'];
const NOT_OF_THE_AUTHOR = /^(?:node_modules|dist|\.yarn.*|.*lock.*)$/;

await main(async () => {
  const { values, positionals: words } = parseArgs({
    options: { outputFile: { type: 'string' } },
    allowPositionals: true,
  });
  const chosen = STARTERS.filter(({ name }) => words.every((word) => name.includes(word)));
  if (chosen.length === 0) throw new Error(`No application has all of these words in its name: ${words.join(' ')}`);
  const packed = await packPackages();
  const rows = [];
  for (const starter of chosen) rows.push(...(await checkStarter(starter, packed)));
  return conclude(rows, values.outputFile);
});

/** Resolves to the rows of the table, up to the first step that fails. */
async function checkStarter(starter, packed) {
  const folder = join(packed, starter.name.replaceAll(/\W+/g, '-').toLowerCase());
  const env = await withNode(starter.node);
  const rows = [];
  for (const [title, expected, run] of stepsOf(starter, folder, packed, env)) {
    const began = Date.now();
    const { code, output } = await run();
    const seconds = `${Math.round((Date.now() - began) / 1_000)} s`;
    rows.push(report([starter.name, title, seconds], { output, checks: [check(expected, code === 0)] }));
    if (code !== 0) break;
  }
  return rows;
}

function stepsOf(starter, folder, packed, env) {
  const { flags, project, manager, test } = starter;
  const ofProject = project ? [project] : [];
  const add = [
    'nest',
    'add',
    '@nest-session/core',
    '--skip-install',
    ...flags,
    ...ofProject.map((name) => `--project=${name}`),
  ];
  const run = (command, ...args) => runIn(folder, command, args, env);
  return [
    ['generated', 'the Nest CLI generates it', () => generate(starter, folder, env)],
    ['installed', 'the packages and all peers fit', () => install(starter, folder, packed, env)],
    [
      'nest add --dry-run',
      'shows what it would change',
      () => changing(folder, false, () => run('npx', ...add, '--dry-run')),
    ],
    ['nest add', 'adds sessions', () => changing(folder, true, () => run('npx', ...add))],
    ['nest add again', 'changes nothing', () => changing(folder, false, () => run('npx', ...add))],
    ['installed again', 'what it has added fits', () => runManager(manager, [], folder, env)],
    ['nest build', 'it is built', () => run('npx', 'nest', 'build', ...ofProject)],
    [test.join(' '), 'its tests pass', () => run(...test)],
    ['started', 'a request reaches its sessions', () => visit(starter, folder, env)],
  ];
}

async function generate({ cli, command, afterwards, edits }, folder, env) {
  const program = await programOf(cli);
  const args = command.map((each) => each.replace('NAME', basename(folder)));
  const results = [await runIn(dirname(folder), program, args, env)];
  if (afterwards && results[0].code === 0) results.push(await runIn(folder, program, afterwards, env));
  for (const [path, edit] of Object.entries(edits)) {
    await writeFile(join(folder, path), edit(await readFile(join(folder, path), 'utf8')));
  }
  return results.at(-1);
}

/** The files are in one command, and pnpm and yarn are told that they are what our packages ask for as well. */
async function install({ manager, packages }, folder, packed, env) {
  const files = OURS.map((name) => [`@nest-session/${name}`, `file:${join(packed, tarballOf(packed, name))}`]);
  const path = join(folder, 'package.json');
  const manifest = JSON.parse(await readFile(path, 'utf8'));
  const others = packages.map((each) => each.split(/(?<=.)@/));
  Object.assign(manifest.dependencies, Object.fromEntries([...files, ...others]));
  if (manager === 'yarn') manifest.resolutions = Object.fromEntries(files);
  await writeFile(path, JSON.stringify(manifest, null, 2));
  if (manager === 'pnpm') {
    const overrides = files.map(([name, file]) => `  '${name}': ${file}\n`);
    await writeFile(join(folder, 'pnpm-workspace.yaml'), `strictDepBuilds: false\noverrides:\n${overrides.join('')}`);
  }
  return runManager(manager, [], folder, env);
}

function tarballOf(packed, name) {
  return readdirSync(packed).find((each) => new RegExp(`^nest-session-${name}-\\d.*\\.tgz$`).test(each));
}

async function runManager(manager, args, folder, env) {
  const options = {
    npm: ['--strict-peer-deps', '--prefer-offline', '--no-audit', '--no-fund'],
    pnpm: ['--no-frozen-lockfile'],
    yarn: ['--silent'],
  };
  const program = manager === 'npm' ? 'npm' : await programOf(manager);
  return runIn(folder, program, ['install', ...options[manager], ...args], env);
}

/** Whether a command changes the files of the application, or leaves them as they are. */
async function changing(folder, isExpected, run) {
  const before = contentOf(folder);
  const { code, output } = await run();
  const isAsExpected = (contentOf(folder) !== before) === isExpected;
  return { code: code || (isAsExpected ? 0 : 1), output };
}

function contentOf(folder) {
  const entries = readdirSync(folder, { withFileTypes: true }).filter(({ name }) => !NOT_OF_THE_AUTHOR.test(name));
  return entries
    .map((each) => {
      const path = join(folder, each.name);
      return `${path}\n${each.isDirectory() ? contentOf(path) : readFileSync(path, 'utf8')}`;
    })
    .join('\n');
}

/** Starts what was built, with the Redis of compose.yaml, and asks its routes. */
async function visit({ prefix, project, flags }, folder, env) {
  // Built by the time it is asked for.
  const { eventually, freePort } = await import('../libs/testing/dist/index.js');
  const children = [];
  let output = '';
  const start = (command, args, variables) => {
    const child = spawn(command, args, { cwd: folder, env: { ...process.env, NO_COLOR: '1', ...env, ...variables } });
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (output += text));
    children.push(child);
  };
  const kill = () => children.forEach((child) => child.kill('SIGKILL'));
  process.once('exit', kill);
  try {
    const [port, redisPort] = [await freePort(), await freePort()];
    const address = flags.includes('--store=memory') ? {} : await startRedis(folder, redisPort, start);
    // A further application of a monorepo reads the name in small letters.
    start('node', [join('dist', project && `apps/${project}`, 'main.js')], {
      PORT: `${port}`,
      port: `${port}`,
      ...address,
    });
    const ask = async (path, options) => {
      const response = await fetch(`http://127.0.0.1:${port}${prefix}${path}`, options);
      return `${response.status} ${await response.text()}`;
    };
    await eventually(async () => expectSame(await ask('/health/live'), '200 {"status":"ok"}'), { timeout: 60_000 });
    if (address.REDIS_URL)
      await eventually(async () => expectSame(await ask('/health/sessions'), '200 {"status":"up"}'), {
        timeout: 60_000,
      });
    expectSame((await ask('/session/me')).slice(0, 3), '401');
    expectSame((await ask('/session/login', { method: 'POST' })).slice(0, 3), '401');
    return { code: 0, output };
  } catch (error) {
    return { code: 1, output: `${output}\n${error.stack}` };
  } finally {
    kill();
    await Promise.all(children.map((child) => child.exitCode ?? child.signalCode ?? once(child, 'close')));
    process.off('exit', kill);
  }
}

/** With the words of compose.yaml on another port. Resolves to what the application finds in its environment. */
async function startRedis(folder, port, start) {
  const password = /^REDIS_PASSWORD=(.*)$/m.exec(await readFile(join(folder, '.env'), 'utf8'))[1];
  const { services } = parse(await readFile(join(folder, 'compose.yaml'), 'utf8'));
  const [, ...words] = services.redis.command.map((word) => word.replaceAll('${REDIS_PASSWORD:?}', password));
  const data = join(folder, 'dist/redis');
  await mkdir(data, { recursive: true });
  start(process.env.REDIS_SERVER, [...words, `--port ${port}`, `--dir ${data}`]);
  return { REDIS_URL: `redis://app:${password}@127.0.0.1:${port}` };
}

function expectSame(actual, expected) {
  if (actual !== expected) throw new Error(`${actual} is not ${expected}`);
}
