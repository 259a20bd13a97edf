// The CommonJS build of a package: its ES modules with `require` and `exports` instead of `import` and `export`, and
// the same declarations. Everything else is what tsc has compiled.
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { writeChanged } from './write-changed.mjs';

const OWN_TIME = statSync(new URL(import.meta.url)).mtimeMs;
const SOURCE_MAP = /^\/\/# sourceMappingURL=.*\n?/m;

// By the end of the name.
const CONVERSIONS = [
  [/\.d\.ts$/, (text) => text],
  [/\.d\.ts\.map$/, moveMap],
  [/\.js$/, toCommonJs],
];

/** Writes `dist/cjs` out of `dist`. What has not changed since the last time stays. */
export async function writeCommonJs(dist) {
  // Node.js takes a module for what the nearest package.json says.
  writeChanged(join(dist, 'cjs/package.json'), `${JSON.stringify({ type: 'commonjs' })}\n`);
  const paths = readdirSync(dist, { encoding: 'utf8', recursive: true }).filter((path) => !path.startsWith('cjs'));
  for (const path of paths) {
    const [source, target] = [join(dist, path), join(dist, 'cjs', path)];
    const [, convert] = CONVERSIONS.find(([name]) => name.test(path)) ?? [];
    if (!convert || isNewer(target, source)) continue;
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, await convert(readFileSync(source, 'utf8')));
  }
}

function isNewer(target, source) {
  if (!existsSync(target)) return false;
  const { mtimeMs } = statSync(target);
  return mtimeMs > OWN_TIME && mtimeMs > statSync(source).mtimeMs;
}

async function toCommonJs(text) {
  // Not before it may have been installed.
  const { default: ts } = await import('typescript');
  const compilerOptions = { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ESNext, esModuleInterop: true };
  return ts.transpileModule(text.replace(SOURCE_MAP, ''), { compilerOptions, fileName: 'module.js' }).outputText;
}

/** The declarations lie one folder deeper. */
function moveMap(text) {
  const map = JSON.parse(text);
  return JSON.stringify({ ...map, sources: map.sources.map((source) => `../${source}`) });
}
