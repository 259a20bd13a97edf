// Run in the folder of an application: bundles all of it, packages included, into one file, with the bundler that is
// installed there. node one-file.mjs <bundler> <module|commonjs> <compiled entry> <file>
import { createRequire } from 'node:module';
import { basename, dirname } from 'node:path';
import { pathToFileURL } from 'node:url';

const [bundler, format, entry, file] = process.argv.slice(2);
const isModule = format === 'module';
const installed = createRequire(`${process.cwd()}/`);

// What Nest requires only if an application has it.
const OPTIONAL = [
  '@nestjs/microservices',
  '@nestjs/platform-socket.io',
  '@nestjs/websockets',
  'class-transformer',
  'class-validator',
];

// Express is CommonJS, and an ES module has no require().
const REQUIRE = `import { createRequire as createRequireHere } from 'node:module';
const require = createRequireHere(import.meta.url);`;

await { esbuild, webpack: () => packWith('webpack'), rspack: () => packWith('@rspack/core') }[bundler]();

async function esbuild() {
  const { build } = installed('esbuild');
  await build({
    entryPoints: [entry],
    outfile: file,
    bundle: true,
    minify: true,
    platform: 'node',
    target: 'node20',
    format: isModule ? 'esm' : 'cjs',
    external: OPTIONAL.flatMap((name) => [name, `${name}/*`]),
    banner: isModule ? { js: REQUIRE } : {},
  });
}

/** webpack, or rspack, which is used in the same way. */
async function packWith(name) {
  const { default: pack } = await import(pathToFileURL(installed.resolve(name)));
  const isOptional = (request) => OPTIONAL.some((each) => request === each || request.startsWith(`${each}/`));
  const output = isModule ? { module: true, chunkFormat: 'module', library: { type: 'module' } } : {};
  const stats = await new Promise((resolve, reject) => {
    const options = {
      mode: 'production',
      target: 'node20',
      entry,
      output: { path: dirname(file), filename: basename(file), ...output },
      experiments: isModule && name === 'webpack' ? { outputModule: true } : {},
      // webpack's own takes most of a minute.
      optimization: { minimize: name !== 'webpack' },
      externals: ({ request }, decide) =>
        isOptional(request) ? decide(null, `${isModule ? 'import' : 'commonjs'} ${request}`) : decide(),
    };
    (pack.rspack ?? pack)(options, (error, result) => (error ? reject(error) : resolve(result)));
  });
  if (stats.hasErrors()) throw new Error(stats.toString({ preset: 'errors-only' }));
}
