import ts from 'typescript';
import { nestAdd } from '../../src/schematics/nest-add.js';
import { MANIFEST, SchematicRun, STARTER } from './schematic-run.js';

type Files = Readonly<Record<string, string | undefined>>;

function added(files: Files, options: Parameters<typeof nestAdd>[0] = {}) {
  const run = new SchematicRun({ ...STARTER, ...files });
  return Object.assign(run, { changed: run.run(nestAdd(options)) });
}

const IMPORT = `import { SessionsModule } from './sessions/sessions.module';`;

describe('nest add', () => {
  it('writes sessions, a login, health routes, a Redis and a test, and installs what they need', () => {
    const run = added({});
    expect(run.changed.toSorted()).toEqual([
      '.env',
      'compose.yaml',
      'package.json',
      'src/app.module.ts',
      'src/main.ts',
      ...['health.controller', 'login.controller', 'redis-options', 'sessions.module', 'users'].map(
        (name) => `src/sessions/${name}.ts`,
      ),
      'test/sessions.e2e-spec.ts',
    ]);
    const { dependencies } = run.tree.readJson('package.json') as typeof MANIFEST;
    expect(dependencies).toEqual({
      ...MANIFEST.dependencies,
      '@nest-session/redis': '^0.1.0',
      '@nestjs/schedule': '^12.0.0',
      '@nestjs/terminus': '^12.0.0',
      ioredis: '^6.0.0',
    });
    expect(run.tasks).toEqual([{ name: 'node-package', options: { command: 'install', quiet: true } }]);
    expect(run.text('src/main.ts')).toContain(
      'const app = await NestFactory.create(AppModule);\napp.enableShutdownHooks();\nawait app.listen(3000);',
    );
  });

  it('changes nothing when it is called again, with other options as well', () => {
    const run = new SchematicRun(STARTER);
    run.run(nestAdd({}));
    expect(run.run(nestAdd({ store: 'memory' }))).toEqual([]);
    expect(run.told.at(-1)).toBe(
      'This application has sessions already: src/sessions/sessions.module.ts imports SessionModule.',
    );
  });

  it('leaves out what is not wanted, and asks for no package then', () => {
    const { changed, tasks } = added({}, { store: 'memory', login: false, health: false });
    expect(changed.toSorted()).toEqual(['src/app.module.ts', 'src/main.ts', 'src/sessions/sessions.module.ts']);
    expect(tasks).toEqual([]);
  });

  it.each([
    ['redis', 'vitest', 'express'],
    ['memory', 'jest', 'express'],
    ['redis', 'jest', 'fastify'],
  ] as const)('writes correct TypeScript for %s, %s and %s, without a mark', (store, runner, platform) => {
    const fastify = `import { FastifyAdapter } from '@nestjs/platform-fastify';\n`;
    const manifest = { ...MANIFEST, devDependencies: { [runner]: '*', '@nestjs/testing': '*' } };
    const { changed, tree } = added(
      {
        'package.json': JSON.stringify(manifest),
        'src/main.ts': (platform === 'fastify' ? fastify : '') + STARTER['src/main.ts'],
      },
      { store },
    );
    const written = changed.filter((path) => path.endsWith('.ts'));
    const problems = written.flatMap((path) => {
      const { diagnostics } = ts.transpileModule(tree.readText(path), { reportDiagnostics: true });
      return diagnostics!.map(({ messageText }) => messageText);
    });
    expect(problems).toEqual([]);
    const text = written.map((path) => tree.readText(path)).join('\n');
    expect(text).not.toContain('// with');
    expect(text.includes('new FastifyAdapter()')).toBe(platform === 'fastify');
    expect(text.includes('RedisSessionModule')).toBe(store === 'redis');
    expect(text.includes(`from 'vitest'`)).toBe(runner === 'vitest');
  });
});

describe('the root module', () => {
  const common = `import { Module } from '@nestjs/common';`;
  const head = `${common}\n${IMPORT}`;

  it.each([
    ['@Module({})', '@Module({ imports: [SessionsModule] })'],
    ['@Module({ providers: [A] })', '@Module({ imports: [SessionsModule], providers: [A] })'],
    ['@Module({ imports: [A] })', '@Module({ imports: [A, SessionsModule] })'],
    [
      '@Module({\n  imports: [\n    A,\n    B(),\n  ],\n})',
      '@Module({\n  imports: [\n    A,\n    B(),\n    SessionsModule,\n  ],\n})',
    ],
    [
      '@Module({ imports: [...shared, ...(isTest ? [] : [A])] })',
      '@Module({ imports: [...shared, ...(isTest ? [] : [A]), SessionsModule] })',
    ],
    ['@Module({ imports: shared })', '@Module({ imports: [...(shared), SessionsModule] })'],
    ['@Module({ imports: modulesOf(env) })', '@Module({ imports: [...(modulesOf(env)), SessionsModule] })'],
  ])('%j becomes %j', (before, after) => {
    const rest = '\nexport class AppModule {}\n';
    const run = added({ 'src/app.module.ts': `${common}\n${before}${rest}` });
    expect(run.text('src/app.module.ts')).toBe(`${head}\n${after}${rest}`);
  });

  it('gets an import in its own style', () => {
    const text = `import { Module } from "@nestjs/common"\nimport { A } from "./a.js"\n@Module({ imports: [A] })\nexport class AppModule {}\n`;
    expect(added({ 'src/app.module.ts': text }).text('src/app.module.ts')).toContain(
      `import { A } from "./a.js"\nimport { SessionsModule } from "./sessions/sessions.module.js"\n`,
    );
  });

  it.each<[string, Files]>([
    ['a call of its own method', { 'src/main.ts': main('await AppModule.register({ a: 1 })', './app.module') }],
    [
      'an alias of tsconfig.json',
      {
        'tsconfig.json': '{ "compilerOptions": { "baseUrl": ".", "paths": { "~/*": ["src/*"] } } }',
        'src/main.ts': main('AppModule', '~/app.module'),
      },
    ],
    [
      'the base of tsconfig.json',
      {
        'tsconfig.json': '{ "compilerOptions": { "baseUrl": "." } }',
        'src/main.ts': main('AppModule', 'src/app.module'),
      },
    ],
    [
      'a file that exports it again',
      { 'src/main.ts': main('AppModule', './all'), 'src/all.ts': `export * from './app.module';` },
    ],
    [
      'another name',
      {
        'src/main.ts': `import { AppModule as Root } from './app.module';\nconst app = await NestFactory.create<App>(Root, {});`,
      },
    ],
    [
      'another file than main.ts',
      { 'src/main.ts': `import './server';`, 'src/server.ts': main('AppModule', './app.module') },
    ],
    [
      'Fastify and a prefix',
      {
        'src/main.ts': `${main('AppModule, new FastifyAdapter()', './app.module')}\napp.setGlobalPrefix('api');`,
      },
    ],
  ])('is found by %s', (_, files) => {
    const run = added(files);
    expect(run.text('src/app.module.ts')).toContain('imports: [SessionsModule]');
  });

  it('is found in the application of a monorepo, whose files are its own', () => {
    const files = Object.fromEntries(
      Object.entries(STARTER).map(([path, text]) => [path.replace(/^src/, 'apps/shop/src'), text]),
    );
    const config = { sourceRoot: 'apps/api/src', projects: { shop: { sourceRoot: 'apps/shop/src' } } };
    const run = new SchematicRun({ ...files, 'nest-cli.json': JSON.stringify(config) });
    const changed = run.run(nestAdd({ sourceRoot: 'apps/api/src', project: 'shop' }));
    expect(changed).toEqual(
      expect.arrayContaining(['apps/shop/src/app.module.ts', 'apps/shop/test/sessions.e2e-spec.ts']),
    );
  });

  it.each<[string, Files]>([
    [
      'src/main.ts gives createModule() to NestFactory, which is no known class',
      { 'src/main.ts': main('createModule()', './app.module') },
    ],
    [
      'src/main.ts gives AppModule to NestFactory, which is no known class',
      { 'src/main.ts': main('AppModule', 'a-package') },
    ],
    ['No file of src calls NestFactory.create()', { 'src/main.ts': 'export {};' }],
    ['The class AppModule in src/app.module.ts has no @Module()', { 'src/app.module.ts': 'export class AppModule {}' }],
    [
      'The @Module() of AppModule in src/app.module.ts is not given an object in place',
      {
        'src/app.module.ts': '@Module(metadata)\nexport class AppModule {}',
      },
    ],
    [
      'The imports of AppModule in src/app.module.ts are not written in place',
      {
        'src/app.module.ts': '@Module({ imports })\nexport class AppModule {}',
      },
    ],
    ['The file src/sessions/users.ts exists already', { 'src/sessions/users.ts': '' }],
    [
      'Install @nest-session/redis as you have installed @nest-session/core, and try again',
      {
        'package.json': JSON.stringify({
          dependencies: { '@nest-session/core': 'file:core.tgz', '@nestjs/core': '^11.1.4' },
        }),
      },
    ],
  ])('is refused: %s', (reason, files) => {
    expect(() => added(files)).toThrow(`${reason}. Nothing was changed. Name the file of your root module`);
  });

  it('is the one that the user names', () => {
    const files = { 'src/main.ts': main('createModule()', './app.module') };
    expect(added(files, { module: 'src/app.module.ts' }).text('src/app.module.ts')).toContain('[SessionsModule]');
    expect(() => added(files, { module: 'src/main.ts' })).toThrow('src/main.ts has 0 classes with @Module()');
    expect(() => added(files, { module: 'src/none.ts' })).toThrow('There is no file src/none.ts');
  });
});

describe('what an application has already', () => {
  it('keeps its compose file and its lines of .env and .gitignore', () => {
    const files = { 'docker-compose.yml': 'services: {}', '.env': 'PORT=3000', '.gitignore': 'dist\n' };
    const run = added(files);
    expect(run.text('docker-compose.yml')).toBe('services: {}');
    expect(run.text('.env')).toMatch(
      /^PORT=3000\nREDIS_PASSWORD=(.{32})\nREDIS_URL=redis:\/\/app:\1@localhost:6379\n$/,
    );
    expect(run.text('.gitignore')).toBe('dist\n.env\n');
    expect(run.told).toContain('Start Redis: docker compose --file compose.redis.yaml up --detach');
  });

  it('needs no Redis where .env has its address', () => {
    expect(added({ '.env': 'REDIS_URL=redis://redis:6379\n' }).changed).not.toContain('compose.yaml');
  });

  it('gets the versions of NestJS 11, and of TypeORM', () => {
    const dependencies = { '@nest-session/core': '0.1.0', '@nestjs/core': '^11.1.4', typeorm: '^1.1.0' };
    const { tree } = added({ 'package.json': JSON.stringify({ dependencies }) });
    expect(tree.readJson('package.json')).toEqual({
      dependencies: {
        ...dependencies,
        '@nest-session/redis': '0.1.0',
        '@nestjs/schedule': '^6.0.0',
        '@nestjs/terminus': '^11.0.0',
        ioredis: '^5.11.0',
      },
    });
  });

  it('is told of enableShutdownHooks() where nothing holds the application', () => {
    const text = `import { AppModule } from './app.module';\nvoid NestFactory.create(AppModule).then((app) => app.listen(3000));\n`;
    const run = added({ 'src/main.ts': text });
    expect(run.text('src/main.ts')).toBe(text);
    expect(run.told.join()).toContain('Call enableShutdownHooks() of the application');
  });
});

function main(given: string, from: string): string {
  return `import { AppModule } from '${from}';\nconst app = await NestFactory.create(${given});`;
}
