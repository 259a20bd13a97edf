// What npm gets of a package: instead of each module that tsc has compiled, one file for each entry point and those that
// several share, so that a class is one class from wherever it is imported. As ES modules in `dist` and as CommonJS in
// `dist/cjs`, each with the same types. Development does without: there, `dist` has what tsc has compiled.
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { decode, encode } from '@jridgewell/sourcemap-codec';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';
import ts from 'typescript';

const MAP_COMMENT = /^\/\/# sourceMappingURL=.*\n?/m;
/** What tsc imports where there are decorators. The bundles have it inside. */
const HELPERS = fileURLToPath(import.meta.resolve('tslib/tslib.es6.mjs'));
/** Modules of texts alone: no line of theirs is in a stack trace. */
const TEXTS = /\/(?:lua-sources|page-files|known-lines)\.js$/;

const ES_MODULES = { dir: 'dist', format: 'es' };
const COMMON_JS = {
  dir: 'dist/cjs',
  format: 'cjs',
  exports: 'named',
  interop: 'auto',
  externalLiveBindings: false,
  // Jest has no import() in CommonJS.
  dynamicImportInCjs: false,
};

/** Writes the package that is compiled in a folder into another folder. */
export async function bundlePackage(folder, target) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const programs = Object.values(manifest.bin ?? {});
  // Those of the Nest CLI, and what it require()s for them.
  const schematics = manifest.schematics ? ['schematics'] : [];
  for (const path of ['README.md', 'LICENSE', ...programs, ...schematics])
    cpSync(join(folder, path), join(target, path), { recursive: true });
  // They are those of this repository.
  const { scripts: _, ...published } = manifest;
  writeFileSync(join(target, 'package.json'), `${JSON.stringify(published, null, 2)}\n`);
  const paths = Object.values(manifest.exports).flatMap((each) => (each.import ? [each.import.default] : []));
  const entries = paths.map((path) => path.slice('./dist/'.length, -'.js'.length));
  const started = programs.flatMap((path) => importedNames(readFileSync(join(folder, path), 'utf8')));
  const code = await bundle(folder, [...entries, ...started], '.js', compiledCode());
  await writeCode(code, folder, target, ES_MODULES);
  await writeCode(code, folder, target, COMMON_JS);
  for (const name of schematics) {
    await writeCode(await bundle(folder, [`${name}/index`], '.js', compiledCode()), folder, target, COMMON_JS);
  }
  const types = await bundle(folder, entries, '.d.ts', dts());
  for (const { dir } of [ES_MODULES, COMMON_JS]) {
    await types.write({ dir: join(target, dir), ...outputOf('.d.ts', 'types') });
  }
  // Node.js takes a module for what the nearest package.json says.
  writeFileSync(join(target, COMMON_JS.dir, 'package.json'), `${JSON.stringify({ type: 'commonjs' })}\n`);
}

/** The compiled modules that a program imports, by their names in `dist`. */
function importedNames(program) {
  return [...program.matchAll(/'\.\.\/dist\/(.*)\.js'/g)].map(([, name]) => name);
}

/** What packages import of each other and of others stays an import. */
function bundle(folder, names, extension, plugin) {
  const input = Object.fromEntries(names.map((name) => [name, join(folder, `dist/${name}${extension}`)]));
  return rollup({ input, external: (id) => !/^(?:\.|\/|tslib$)/.test(id), plugins: [plugin], onwarn: refuse });
}

function refuse({ code, plugin, message }) {
  // Types that an entry point does not export stand in a file that several share.
  const isMeant = code === 'UNUSED_EXTERNAL_IMPORT' || plugin === 'dts';
  if (!isMeant) throw new Error(message);
}

function outputOf(extension, shared = '[name]') {
  const names = { entryFileNames: `[name]${extension}`, chunkFileNames: `${shared}${extension}` };
  return { ...names, minifyInternalExports: false, hoistTransitiveImports: false };
}

/** Modules as tsc has compiled them, without the comments, which the types have. */
function compiledCode() {
  const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ESNext, removeComments: true };
  return {
    name: 'compiled-code',
    resolveId: (id) => (id === 'tslib' ? HELPERS : undefined),
    load(path) {
      const code = readFileSync(path, 'utf8').replace(MAP_COMMENT, '');
      if (path === HELPERS) return { code, map: { mappings: '' }, moduleSideEffects: false };
      return { code, map: TEXTS.test(path) ? { mappings: '' } : readFileSync(`${path}.map`, 'utf8') };
    },
    transform(code, path) {
      const compilerOptions = { ...options, sourceMap: true };
      const { outputText, sourceMapText } = ts.transpileModule(code, { fileName: path, compilerOptions });
      return { code: withHints(outputText.replace(MAP_COMMENT, ''), code), map: sourceMapText };
    },
  };
}

/** Puts the comments back that tell bundlers what to do with an import(). */
function withHints(code, commented) {
  const hints = commented.matchAll(/import\((\/\* webpack.*?\*\/ )('[^']+')\)/g);
  return [...hints].reduce((text, [hinted, , name]) => text.replace(`import(${name})`, hinted), code);
}

async function writeCode(code, folder, target, options) {
  const dir = join(target, options.dir);
  const { output } = await code.generate({ ...options, ...outputOf('.js'), dir, sourcemap: 'hidden' });
  for (const { fileName, code: text, map } of output.filter(({ type }) => type === 'chunk')) {
    // Log lines and messages of Nest show the names of classes.
    if (/\bclass \w+\$\d/.test(text)) throw new Error(`${folder} has two classes of one name, in ${fileName}`);
    const path = join(dir, fileName);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${text}//# sourceMappingURL=${basename(path)}.map\n`);
    // As seen from the file in the package, which is somewhere else than the sources.
    const place = dirname(join(folder, relative(target, path)));
    const move = (source) => relative(place, resolve(dirname(path), source));
    writeFileSync(`${path}.map`, JSON.stringify(linesOf(map, move)));
  }
}

/**
 * A source map that knows lines, which stack traces show, and not the text of the sources: with columns and texts, the
 * maps of a package would be larger than all else in it.
 */
function linesOf({ version, file, sources, mappings }, move) {
  const lines = decode(mappings).map((segments) => {
    const known = segments.filter(([, source]) => source !== undefined).map((segment) => segment.slice(0, 4));
    return known.filter(([, source, line], i) => source !== known[i - 1]?.[1] || line !== known[i - 1]?.[2]);
  });
  return { version, file, sources: sources.map(move), names: [], mappings: encode(lines) };
}
