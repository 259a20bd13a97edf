// Writes packages/session-redis/src/scripts/lua-sources.ts, the text of every .lua file beside it, and
// configuration/version.ts, the version of its package.json, so that no program has to find these files when it runs,
// wherever it was bundled into. The build, the type check and Jest (as its `globalSetup`) call this first; with --watch,
// it runs until it is stopped and follows changes of scripts.
import { existsSync, readdirSync, readFileSync, renameSync, watch, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const PACKAGE = fileURLToPath(new URL('../packages/session-redis/', import.meta.url));
const FOLDER = `${PACKAGE}src/scripts/`;
const LUA = /\.lua$/;

/** The text of each script by its name, such as `session/save-session`. */
export function luaSources() {
  const paths = readdirSync(FOLDER, { encoding: 'utf8', recursive: true }).filter((path) => LUA.test(path));
  return Object.fromEntries(
    paths.toSorted().map((path) => [path.replace(LUA, ''), readFileSync(`${FOLDER}${path}`, 'utf8')]),
  );
}

export default function embedScripts() {
  const entries = Object.entries(luaSources()).map(
    (entry) => `  ${entry.map((text) => JSON.stringify(text)).join(': ')},\n`,
  );
  const text = [
    '// Written by .dev/embed-scripts.mjs out of the .lua files beside it: change those.\n',
    'export const LUA_SOURCES: Readonly<Record<string, string>> = {\n',
    ...entries,
    '};\n',
  ].join('');
  write(`${FOLDER}lua-sources.ts`, text);
  embedVersion();
}

function embedVersion() {
  const { version } = JSON.parse(readFileSync(`${PACKAGE}package.json`, 'utf8'));
  const text = [
    '// Written by .dev/embed-scripts.mjs out of package.json: change that.\n',
    `export const VERSION: string = '${version}';\n`,
  ].join('');
  write(`${PACKAGE}src/configuration/version.ts`, text);
}

function write(target, text) {
  // What is as it should be stays untouched: a compiler that watches it would start again.
  if (existsSync(target) && readFileSync(target, 'utf8') === text) return;
  // In one step: another process may be reading it.
  const unfinished = `${target}.${process.pid}`;
  writeFileSync(unfinished, text);
  renameSync(unfinished, target);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  embedScripts();
  if (process.argv.includes('--watch')) {
    watch(FOLDER, { recursive: true }, (_, path) => path && LUA.test(path) && embedScripts());
  }
}
