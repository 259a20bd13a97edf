// Applications as the Nest CLI generates them, and what their authors have changed before they call nest add.
const NEW = ['new', 'NAME', '--skip-git', '--skip-install', '--package-manager', 'npm'];
const NEST_11 = { cli: 'nest-11', command: NEW, node: 'node-20', packages: ['@nestjs/schedule@6', 'ioredis@5'] };
const NEST_12 = {
  cli: 'nest-12',
  command: [...NEW, '--no-observe'],
  node: 'node-22',
  packages: ['@nestjs/schedule@12', 'ioredis@6'],
};
const E2E = ['npm', 'run', '--silent', 'test:e2e'];

const onFastify = (text) =>
  text
    .replace(/^/, "import { FastifyAdapter, NestFastifyApplication } from '@nestjs/platform-fastify';\n")
    .replace('.create(AppModule)', '.create<NestFastifyApplication>(AppModule, new FastifyAdapter())');

/**
 * @typedef {object} Starter
 * @property {string} name
 * @property {string} cli and `node`: names of other-versions.mjs
 * @property {string[]} command what the CLI is told, and `afterwards`, what it is told in the folder of the application
 * @property {string[]} packages what is installed beside ours
 * @property {Record<string, (text: string) => string>} [edits] by file
 * @property {string[]} [flags] those of nest add
 * @property {string[]} test a command
 */
export const STARTERS = [
  { name: 'Nest 11, Express, Jest, npm', ...NEST_11 },
  {
    name: 'Nest 11, Fastify with a prefix, Jest, npm',
    ...NEST_11,
    packages: [...NEST_11.packages, '@nestjs/platform-fastify@11'],
    prefix: '/api',
    edits: {
      'src/main.ts': (text) => onFastify(text).replace('  await app.listen', "  app.setGlobalPrefix('api');\n$&"),
    },
  },
  {
    name: 'Nest 11, monorepo, Jest, npm',
    ...NEST_11,
    afterwards: ['generate', 'app', 'shop'],
    project: 'shop',
    // The generated test does not close its application, so that its process would never end.
    test: ['npx', 'jest', '--config', 'apps/shop/test/jest-e2e.json', 'sessions'],
  },
  {
    name: 'Nest 11, SWC, Jest, yarn',
    ...NEST_11,
    manager: 'yarn',
    packages: [...NEST_11.packages, '@swc/cli@0.8.1', '@swc/core@1.16.22'],
    edits: { 'nest-cli.json': (text) => text.replace('"deleteOutDir": true', '$&, "builder": "swc"') },
  },
  {
    name: 'Nest 11, imports of a variable, sessions in memory, Jest, npm',
    ...NEST_11,
    flags: ['--store=memory'],
    edits: {
      'src/app.module.ts': (text) =>
        text.replace('imports: []', 'imports: shared').replace('@Module', 'const shared = [];\n\n@Module'),
    },
  },
  { name: 'Nest 12, Express, Vitest, npm', ...NEST_12 },
  {
    name: 'Nest 12, Fastify, Vitest, pnpm',
    ...NEST_12,
    manager: 'pnpm',
    packages: [...NEST_12.packages, '@nestjs/platform-fastify@12'],
    edits: { 'src/main.ts': onFastify },
  },
  {
    // What `nest new` generates for the answer "CJS" to its question. Older Node.js has a Jest that cannot load it.
    name: 'Nest 12, Express, Jest, npm',
    ...NEST_12,
    cli: 'nest-12-schematics',
    command: ['@nestjs/schematics:application', '--name=NAME', '--language=ts', '--type=cjs'],
    node: 'node-24',
  },
].map((starter) => ({ manager: 'npm', flags: [], edits: {}, prefix: '', project: '', test: E2E, ...starter }));
