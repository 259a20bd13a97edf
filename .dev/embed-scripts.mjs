// Writes src/scripts/lua-sources.ts of each package with Redis scripts, the text of every .lua file beside it,
// packages/session-admin/src/page/page-files.ts, the text of every file of the page beside it,
// packages/session-cli/src/explanation/known-lines.ts, what is in log-lines.json beside it, and
// configuration/version.ts of two packages, the version of the package.json, so that no program has to find these files
// when it runs, wherever it was bundled into. The build, the type check and Jest (as its `globalSetup`) call this first;
// with --watch, it runs until it is stopped and follows changes of scripts.
import { existsSync, readdirSync, readFileSync, renameSync, watch, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const [EVENTS, ADMIN] = ['redis-events', 'session-admin'].map((name) =>
  fileURLToPath(new URL(`../packages/${name}/`, import.meta.url)),
);
const PACKAGES = fileURLToPath(new URL('../packages/', import.meta.url));
const PAGE = `${ADMIN}src/page/`;
const LINES = `${PACKAGES}session-cli/src/explanation/`;
const LUA = /\.lua$/;
const OF_PAGE = /\.(?:html|css|js|svg)$/;

/** The folders with the Redis scripts of a package, each with a slash at its end. */
export function scriptFolders() {
  const folders = readdirSync(PACKAGES).map((name) => `${PACKAGES}${name}/src/scripts/`);
  return folders.filter((folder) => existsSync(folder) && luaFiles(folder).length > 0);
}

/** The text of each script in a folder by its name, such as `session/save-session`. */
export function luaSources(folder) {
  return Object.fromEntries(
    luaFiles(folder).map((path) => [path.replace(LUA, ''), readFileSync(`${folder}${path}`, 'utf8')]),
  );
}

function luaFiles(folder) {
  return readdirSync(folder, { encoding: 'utf8', recursive: true })
    .filter((path) => LUA.test(path))
    .toSorted();
}

function pageFiles() {
  const names = readdirSync(PAGE).filter((name) => OF_PAGE.test(name));
  return Object.fromEntries(names.toSorted().map((name) => [name, readFileSync(`${PAGE}${name}`, 'utf8')]));
}

export default function embedScripts() {
  for (const folder of scriptFolders()) {
    write(`${folder}lua-sources.ts`, textsOf('LUA_SOURCES', 'the .lua files', luaSources(folder)));
  }
  write(
    `${PAGE}page-files.ts`,
    textsOf('PAGE_FILES: Readonly<Record<string, string>>', 'the files of the page', pageFiles()),
  );
  write(`${LINES}known-lines.ts`, knownLines());
  for (const folder of [EVENTS, ADMIN]) embedVersion(folder);
}

function knownLines() {
  const { shared, ...levels } = JSON.parse(readFileSync(`${LINES}log-lines.json`, 'utf8'));
  return [
    '// Written by .dev/embed-scripts.mjs out of log-lines.json: change that.\n',
    'interface Texts { readonly means: string; readonly do: string; readonly see?: string }\n',
    'type Shared = Texts & { readonly level: string; readonly lines: readonly string[] };\n',
    'type ByLine = Readonly<Record<string, Readonly<Record<string, Texts>>>>;\n',
    `export const LINES_BY_LEVEL: ByLine = ${JSON.stringify(levels, null, 2)};\n`,
    `export const SHARED_LINES: readonly Shared[] = ${JSON.stringify(shared, null, 2)};\n`,
  ].join('');
}

function textsOf(constant, origin, texts) {
  const entries = Object.entries(texts).map((entry) => `  ${entry.map((text) => JSON.stringify(text)).join(': ')},\n`);
  return [
    `// Written by .dev/embed-scripts.mjs out of ${origin} beside it: change those.\n`,
    `export const ${constant} = {\n`,
    ...entries,
    '};\n',
  ].join('');
}

function embedVersion(folder) {
  const { version } = JSON.parse(readFileSync(`${folder}package.json`, 'utf8'));
  const text = [
    '// Written by .dev/embed-scripts.mjs out of package.json: change that.\n',
    `export const VERSION: string = '${version}';\n`,
  ].join('');
  write(`${folder}src/configuration/version.ts`, text);
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
    for (const folder of scriptFolders()) {
      watch(folder, { recursive: true }, (_, path) => path && LUA.test(path) && embedScripts());
    }
    watch(PAGE, (_, path) => path && OF_PAGE.test(path) && embedScripts());
  }
}
