// npm run check:publish: what would be published can be used, by its exports and its types, from ES modules and
// CommonJS, and npm would take it. The packages are packed out of a copy that has an address of the repository, since
// ours may have none yet.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { main, root, run, runQuietly } from './processes.mjs';
import { writeAddress } from './release-address.mjs';
import { IN_MEMORY, temporaryFolder } from './temporary-folder.mjs';
import { publishedPackages } from './workspaces.mjs';

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
  await runQuietly('npm', [
    'pack',
    ...packages.map(({ folder }) => join(copy, folder)),
    '--pack-destination',
    tarballs,
  ]);
  for (const path of readdirSync(tarballs).map((name) => join(tarballs, name))) {
    failures += await run('node_modules/.bin/publint', ['run', path, '--strict']);
    failures += await run('node_modules/.bin/attw', [path, '--profile', 'strict']);
  }
  // npm unpacks each tarball there, more than once.
  const cache = temporaryFolder('npm', IN_MEMORY);
  failures += await run(process.execPath, ['.dev/release-publish.mjs', '--dry-run', tarballs], {
    npm_config_cache: cache,
  });
  return failures === 0 ? 0 : 1;
});

/** What a package is packed from: neither its tests nor what is installed. */
function copyTo(copy, path) {
  const isPacked = (source) => !/\/(?:node_modules|test)$/.test(source);
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
  const fields = {
    main: './dist/cjs/index.js',
    types: './dist/cjs/index.d.ts',
    exports: {
      '.': conditionsOf('index'),
      ...Object.fromEntries(subpaths.map((name) => [`./${name}`, conditionsOf(name)])),
      './package.json': './package.json',
    },
  };
  if (subpaths.length === 0) return fields;
  // For compilers that do not read `exports`: "moduleResolution": "node10", which Nest 11 had at first.
  const declarations = Object.fromEntries(subpaths.map((name) => [name, [`./dist/cjs/${name}.d.ts`]]));
  return { ...fields, typesVersions: { '*': declarations } };
}

/**
 * `module-sync` is what Node.js asks for where it can require() ES modules, and `module` what bundlers ask for: both
 * get the ES modules for `import` and for `require`, so that no process has two copies of a package. The CommonJS build
 * is for whoever cannot require() ES modules, such as Jest.
 */
function conditionsOf(name) {
  return {
    import: { types: `./dist/${name}.d.ts`, default: `./dist/${name}.js` },
    'module-sync': `./dist/${name}.js`,
    module: `./dist/${name}.js`,
    default: { types: `./dist/cjs/${name}.d.ts`, default: `./dist/cjs/${name}.js` },
  };
}
