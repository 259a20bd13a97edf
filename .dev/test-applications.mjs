// npm run test:applications: the packages in applications as other tools make them. The Nest CLI generates each outside
// of the repository, the packed packages are installed, and the files of docs/test/works-with/applications/added are
// added. Its own test commands run, with the configuration that was generated. Then it is built in several ways, in one
// file as well, started, and visited: a session is kept in Redis, and its end is heard of. Words choose applications by
// their names.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { generate } from '../docs/test/works-with/applications/scratch-application.mjs';
import { visit } from '../docs/test/works-with/applications/visit.mjs';
import { check, conclude, report } from './checks.mjs';
import { withNode } from './other-versions.mjs';
import { installPacked, packPackages } from './packed-packages.mjs';
import { main } from './processes.mjs';
import { runIn } from './temporary-folder.mjs';

const ONE_FILE = fileURLToPath(new URL('../docs/test/works-with/applications/one-file.mjs', import.meta.url));

const NEW = ['new', 'NAME', '--skip-git', '--skip-install', '--package-manager', 'npm'];
const WITH_NEST_11 = ['@nestjs/event-emitter@3', '@nestjs/schedule@6', 'ioredis@5'];
const WITH_NEST_12 = ['@nestjs/event-emitter@12', '@nestjs/schedule@12', 'ioredis@6'];
const ESBUILD = 'esbuild@0.28.2';
// The CLI names the others when they are missing.
const RSPACK = ['@rspack/core@2.3.2', 'webpack-node-externals@3.0.0', 'tsconfig-paths-webpack-plugin@4.2.0'];

const nestBuild = (...options) => ({ title: ['nest build', ...options].join(' '), nest: options });
const oneFile = (bundler, format) => ({ title: `one file: ${bundler}, ${format}`, bundler, format });

// Its dependencies ask for later versions still.
const CLI_12_NEEDS = { version: [20, 20], node: 'node-22' };

const APPLICATIONS = [
  {
    // "module": "commonjs", and a compiler that does not read `exports`.
    name: 'nest-11.0, Jest 29',
    generator: { cli: 'nest-11.0', command: NEW },
    with: WITH_NEST_11,
    // The generated e2e test does not close its application, and Jest 29 waits for it for ever.
    tests: [['test'], ['test:e2e', '--', 'shop']],
    builds: [nestBuild()],
  },
  {
    name: 'nest-11, Jest 30',
    generator: { cli: 'nest-11', command: NEW },
    with: [...WITH_NEST_11, ESBUILD],
    tests: [['test'], ['test:e2e']],
    builds: [nestBuild('--webpack'), nestBuild(), oneFile('esbuild', 'commonjs'), oneFile('webpack', 'commonjs')],
  },
  {
    name: 'nest-12, Vitest',
    generator: { cli: 'nest-12', command: [...NEW, '--no-observe'] },
    cliNeeds: CLI_12_NEEDS,
    with: [...WITH_NEST_12, ESBUILD, ...RSPACK, '@swc/cli@0.8.1', '@swc/core@1.16.22'],
    tests: [['test'], ['test:e2e']],
    builds: [
      nestBuild('--builder', 'rspack'),
      nestBuild('--builder', 'swc'),
      nestBuild(),
      oneFile('esbuild', 'module'),
      oneFile('rspack', 'module'),
    ],
  },
  {
    // What `nest new` generates for the answer "CJS" to its question.
    name: 'nest-12, Jest 30',
    generator: {
      cli: 'nest-12-schematics',
      command: ['@nestjs/schematics:application', '--name=NAME', '--language=ts', '--type=cjs'],
    },
    cliNeeds: CLI_12_NEEDS,
    with: [...WITH_NEST_12, ESBUILD],
    tests: [['test'], ['test:e2e']],
    // Jest cannot load Nest 12 as CommonJS before.
    testsNeed: { version: [24, 9], node: 'node-24' },
    builds: [nestBuild(), oneFile('esbuild', 'commonjs')],
  },
];

await main(async () => {
  const { values, positionals: words } = parseArgs({
    options: { outputFile: { type: 'string' } },
    allowPositionals: true,
  });
  const chosen = APPLICATIONS.filter(({ name }) => words.every((word) => name.includes(word)));
  if (chosen.length === 0) throw new Error(`No application has all of these words in its name: ${words.join(' ')}`);
  const packed = await packPackages();
  // Built by the time it is asked for.
  const { RedisServer } = await import('../libs/testing/dist/index.js');
  const redis = await RedisServer.start();
  try {
    const rows = await Promise.all(chosen.map((each) => checkApplication(each, packed, redis)));
    return await conclude(rows.flat(), values.outputFile);
  } finally {
    await redis.stop();
  }
});

/** Resolves to the rows of the table: what was done, and its checks. */
async function checkApplication(application, packed, redis) {
  const { name, generator, tests, builds } = application;
  const [cli, test] = await Promise.all([application.cliNeeds, application.testsNeed].map(nodeFor));
  const folder = join(packed, name.replaceAll(/\W+/g, '-').toLowerCase());
  const rows = [];
  const step = async (title, expected, run) => {
    const { code, output } = await run;
    rows.push(report([name, title], { output, checks: [check(expected, code === 0)] }));
    return code === 0;
  };
  if (!(await step('generated', 'the Nest CLI generates it', generate(generator, folder, cli)))) return rows;
  const installed = installPacked(folder, packed, ...application.with);
  if (!(await step('npm install', 'npm installs the packages, and all peers fit', installed))) return rows;
  for (const args of tests) {
    const run = runIn(folder, 'npm', ['run', '--silent', ...args], { REDIS_URL: redis.url, ...test });
    await step(`npm run ${args.join(' ')}`, 'its tests pass', run);
  }
  for (const build of builds) {
    await step(build.title, 'it is built, starts and has sessions', use(build, folder, redis, cli));
  }
  return rows;
}

/** Of one build after the other: a bundle is made of what the last `nest build` has compiled. */
async function use({ nest, bundler, format }, folder, redis, cli) {
  if (nest) {
    const built = await runIn(folder, 'npx', ['nest', 'build', ...nest], cli);
    return built.code === 0 ? visit(folder, 'dist/main.js', redis) : built;
  }
  // Where no packages are installed.
  const file = `${folder}-${bundler}/main.${format === 'module' ? 'mjs' : 'cjs'}`;
  const bundled = await runIn(folder, 'node', [ONE_FILE, bundler, format, join(folder, 'dist/main.js'), file]);
  return bundled.code === 0 ? visit(`${folder}-${bundler}`, file, redis) : bundled;
}

/** The environment with the Node.js that is needed, where this one is older. */
async function nodeFor(needed) {
  const [major, minor] = process.versions.node.split('.').map(Number);
  const isOlder = needed && (major < needed.version[0] || (major === needed.version[0] && minor < needed.version[1]));
  return isOlder ? withNode(needed.node) : {};
}
