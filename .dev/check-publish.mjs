// npm run check:publish: what would be published can be used, by its exports and its types, from ES modules and
// CommonJS, by old compilers too, it is small, and npm would take it. The packages are packed out of a copy that has an
// address of the repository, since ours may have none yet.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { packPublished } from './packed-packages.mjs';
import { main, root, run, runQuietly } from './processes.mjs';
import { writeAddress } from './release-address.mjs';
import { IN_MEMORY, temporaryFolder } from './temporary-folder.mjs';
import { publishedPackages } from './workspaces.mjs';

/** What npm may get of a package, unpacked. */
const MOST_FILES = 400;
const MOST_BYTES = 1_500_000;

const EXAMPLE_ADDRESS = 'https://github.com/example/nest-session';

await main(async () => {
  let failures = 0;
  const copy = temporaryFolder('publish');
  const packages = publishedPackages();
  for (const path of ['package.json', 'SECURITY.md', ...packages.map(({ folder }) => folder)]) copyTo(copy, path);
  writeAddress(copy, EXAMPLE_ADDRESS);
  for (const { folder, manifest } of packages) {
    const wanted = wantedEntries(manifest);
    const isAsWanted = Object.keys(wanted).every((field) => isDeepStrictEqual(manifest[field], wanted[field]));
    if (!isAsWanted) console.error(`${folder}/package.json must have:\n${JSON.stringify(wanted, null, 2)}`);
    const dead = deadLinks(join(copy, folder));
    for (const link of dead) console.error(`${folder}/README.md links to ${link}, which is not in the package`);
    failures += (isAsWanted ? 0 : 1) + dead.length;
  }
  const tarballs = join(copy, 'tarballs');
  mkdirSync(tarballs);
  for (const { name, entryCount, unpackedSize } of await packPublished(tarballs, copy)) {
    console.log(`${name}: ${entryCount} files, ${unpackedSize} bytes`);
    if (entryCount <= MOST_FILES && unpackedSize <= MOST_BYTES) continue;
    console.error(`${name} must have at most ${MOST_FILES} files and ${MOST_BYTES} bytes`);
    failures++;
  }
  for (const path of readdirSync(tarballs).map((name) => join(tarballs, name))) {
    failures += await run('node_modules/.bin/publint', ['run', path, '--strict']);
    failures += await run('node_modules/.bin/attw', [path, '--profile', 'strict']);
  }
  const consumer = await consumerOf(packages, tarballs);
  failures += (await compileConsumer(packages, consumer)) + (await checkSourceMaps(consumer));
  // npm unpacks each tarball there, more than once.
  const cache = temporaryFolder('npm', IN_MEMORY);
  failures += await run(process.execPath, ['.dev/release-publish.mjs', '--dry-run', tarballs], {
    npm_config_cache: cache,
  });
  return failures === 0 ? 0 : 1;
});

/** A folder in which the packages are installed. The packages of others are those of the repository. */
async function consumerOf(packages, tarballs) {
  const consumer = temporaryFolder('consumer');
  const modules = join(consumer, 'node_modules');
  mkdirSync(join(modules, '@nest-session'), { recursive: true });
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (name !== '@nest-session') symlinkSync(join(root, 'node_modules', name), join(modules, name));
  }
  for (const path of readdirSync(tarballs)) {
    const { folder, manifest } = packages.find((each) => path.startsWith(tarballOf(each.manifest)));
    const target = join(modules, manifest.name);
    mkdirSync(target);
    await runQuietly('tar', ['-xzf', join(tarballs, path), '-C', target, '--strip-components=1']);
    const others = join(root, folder, 'node_modules');
    if (existsSync(others)) symlinkSync(others, join(target, 'node_modules'));
  }
  writeFileSync(join(consumer, 'package.json'), '{ "type": "module" }');
  return consumer;
}

/**
 * Compiles what imports each entry point, as the smallest consumer does: with the library of ES2017, which NestJS is
 * content with, without `skipLibCheck`, and with each way to resolve modules.
 */
async function compileConsumer(packages, consumer) {
  const entries = packages.flatMap(({ manifest }) =>
    Object.keys(manifest.exports).map((key) => manifest.name + key.slice(1)),
  );
  const imported = entries.filter((entry) => !entry.endsWith('/package.json'));
  const lines = imported.map((entry, index) => `export * as entry${index} from '${entry}';\n`);
  writeFileSync(join(consumer, 'consumer.ts'), lines.join(''));
  const ways = [
    ['commonjs', 'node10'],
    ['node16', 'node16'],
    ['esnext', 'bundler'],
  ];
  const codes = await Promise.all(ways.map((way) => run('node_modules/.bin/tsc', compilerOptions(consumer, way))));
  return codes.filter((code) => code !== 0).length;
}

/** A stack trace leads to the line of the source that throws, from an ES module and from CommonJS. */
async function checkSourceMaps(consumer) {
  const core = 'node_modules/@nest-session/core';
  const program = (path) => `
    const { HeaderSessionIdResolver } = await import('./${core}/${path}');
    try { new HeaderSessionIdResolver(''); } catch (error) { console.log(error.stack); }
  `;
  let failures = 0;
  for (const path of ['dist/index.js', 'dist/cjs/index.js']) {
    const file = join(consumer, 'throws.mjs');
    writeFileSync(file, program(path));
    const stack = await runQuietly(process.execPath, ['--enable-source-maps', file]);
    const [, source, line] = new RegExp(`${core}/(src/.*\\.ts):(\\d+):`).exec(stack) ?? [];
    const text = source && readFileSync(join(root, 'packages/session-core', source), 'utf8').split('\n')[line - 1];
    if (text?.includes('throw')) continue;
    console.error(`The source map of ${path} does not lead to the line that throws, but to ${text}:\n${stack}`);
    failures++;
  }
  return failures;
}

function compilerOptions(consumer, [module, resolution]) {
  const strictness = ['--noEmit', '--strict', '--experimentalDecorators', '--ignoreDeprecations', '6.0'];
  const modules = ['--module', module, '--moduleResolution', resolution];
  return [
    ...strictness,
    '--target',
    'es2017',
    '--lib',
    'es2017',
    ...modules,
    '--types',
    'node',
    join(consumer, 'consumer.ts'),
  ];
}

/** How npm calls the file of a package, up to the end. */
function tarballOf({ name, version }) {
  return `${name.slice(1).replace('/', '-')}-${version}`;
}

/** What a package is packed from: neither its sources and tests nor what is installed. */
function copyTo(copy, path) {
  const isPacked = (source) => !/\/(?:node_modules|src|test)$/.test(source);
  cpSync(join(root, path), join(copy, path), { recursive: true, filter: isPacked });
}

/** The links of the README to what is neither on the web nor a file of the package. */
function deadLinks(folder) {
  const links = readFileSync(join(folder, 'README.md'), 'utf8').matchAll(/\]\(([^)#]+)/g);
  const relative = [...links].map(([, link]) => link).filter((link) => !/^https?:/.test(link));
  return relative.filter((link) => link.startsWith('..') || !existsSync(join(folder, link)));
}

/** The fields that say what is imported and required, for the entry points that `exports` names. */
function wantedEntries({ exports }) {
  const names = Object.keys(exports).flatMap((path) => (path === './package.json' ? [] : [path.slice('./'.length)]));
  const subpaths = names.filter((name) => name !== '');
  // A package of several things has no main entry that would load all of them.
  const hasMain = names.includes('');
  const fields = {
    main: hasMain ? './dist/cjs/index.js' : undefined,
    types: hasMain ? './dist/cjs/index.d.ts' : undefined,
    exports: {
      ...(hasMain && { '.': conditionsOf('index') }),
      ...Object.fromEntries(subpaths.map((name) => [`./${name}`, conditionsOf(name)])),
      './package.json': './package.json',
    },
  };
  if (subpaths.length === 0) return fields;
  // For compilers that do not read `exports`: "moduleResolution": "node10", which Nest 11 had at first.
  const declarations = Object.fromEntries(subpaths.map((name) => [name, [conditionsOf(name).default.types]]));
  return { ...fields, typesVersions: { '*': declarations } };
}

/**
 * `module-sync` is what Node.js asks for where it can require() ES modules, and `module` what bundlers ask for: both
 * get the ES modules for `import` and for `require`, so that no process has two copies of a package. The CommonJS build
 * is for whoever cannot require() ES modules, such as Jest.
 */
function conditionsOf(name) {
  const file = name.replaceAll('/', '-');
  return {
    import: { types: `./dist/${file}.d.ts`, default: `./dist/${file}.js` },
    'module-sync': `./dist/${file}.js`,
    module: `./dist/${file}.js`,
    default: { types: `./dist/cjs/${file}.d.ts`, default: `./dist/cjs/${file}.js` },
  };
}
