import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { loadScript, type ScriptSources } from '../../src/scripts/define-scripts.js';

const packages = new URL('../../../', import.meta.url);

/** The folders of all packages that have Redis scripts. */
export const SCRIPT_FOLDERS = readdirSync(packages)
  .map((name) => new URL(`${name}/src/scripts/`, packages))
  .filter((folder) => existsSync(folder));

/** The text of each script in a folder by its name. */
export function sourcesIn(folder: URL): ScriptSources {
  const files = readdirSync(folder, { encoding: 'utf8', recursive: true }).filter((file) => file.endsWith('.lua'));
  const texts = files.map((file) => [file.slice(0, -'.lua'.length), readFileSync(new URL(file, folder), 'utf8')]);
  return Object.fromEntries(texts) as ScriptSources;
}

const all: ScriptSources = Object.assign({}, ...SCRIPT_FOLDERS.map(sourcesIn)) as ScriptSources;

/** The names of the scripts of all packages, without what they include. */
export const ALL_SCRIPTS = Object.keys(all).filter((name) => !name.startsWith('library/'));

/** A script of any package. One that notes when a session ends does so in the buckets. */
export function scriptOf(name: string): string {
  return loadScript({ ...all, 'library/place': all['library/place-in-buckets']! }, name);
}
