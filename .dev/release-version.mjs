// npm run release:version -- 1.0.0: gives all packages one version, and what is under Unreleased in CHANGELOG.md its
// heading. Once more changes nothing.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { main, root } from './processes.mjs';
import { publishedPackages } from './workspaces.mjs';
import { writeChanged } from './write-changed.mjs';

const VERSION = /^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-[a-z]+\.(?:0|[1-9]\d*))?$/;
const DEPENDENCIES = ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies'];

await main(async () => {
  const [, , version = ''] = process.argv;
  if (!VERSION.test(version)) {
    throw new Error(
      `"${version}" is not a version. Write it like this, or 1.0.0-rc.0 for a version to try:\nnpm run release:version -- 1.0.0`,
    );
  }
  const published = new Set(publishedPackages().map(({ manifest }) => manifest.name));
  const changes = [
    ...manifests().map((path) => [
      path,
      (text) => inJson(text, (manifest) => setVersion(manifest, version, published)),
    ]),
    ['package-lock.json', (text) => inJson(text, (lock) => setVersions(lock, version, published))],
    ['CHANGELOG.md', (text) => released(text, version)],
  ].map(([path, change]) => [join(root, path), change(readFileSync(join(root, path), 'utf8'))]);
  for (const [path, text] of changes) writeChanged(path, text);
  console.log(
    `All packages have version ${version}. Read its changes in CHANGELOG.md, commit, and tag that v${version}.`,
  );
});

/** The package.json files that name a version of the packages. */
function manifests() {
  const inside = (parent) => readdirSync(join(root, parent)).map((name) => `${parent}/${name}/package.json`);
  const all = ['packages', 'libs', 'apps', 'examples'].flatMap(inside);
  return ['bench/package.json', ...all].filter((path) => existsSync(join(root, path)));
}

function inJson(text, change) {
  const content = JSON.parse(text);
  change(content);
  return `${JSON.stringify(content, null, 2)}\n`;
}

/** In a package.json file, or in an entry of the lock file, which has a name where the folder tells another one. */
function setVersion(manifest, version, published) {
  if (published.has(manifest.name)) manifest.version = version;
  for (const ranges of DEPENDENCIES.map((field) => manifest[field] ?? {})) {
    for (const name of Object.keys(ranges)) if (published.has(name)) ranges[name] = `^${version}`;
  }
}

function setVersions(lock, version, published) {
  for (const entry of Object.values(lock.packages)) setVersion(entry, version, published);
}

/** With the heading of the version over what was unreleased. */
function released(text, version) {
  if (text.includes(`\n## [${version}] - `)) return text;
  const [before, after] = text.split('\n## [Unreleased]\n');
  const changes = after?.split('\n## [')[0];
  if (!changes?.trim()) {
    throw new Error('CHANGELOG.md has nothing under "## [Unreleased]". Write there first what the version changes.');
  }
  const today = new Date().toISOString().slice(0, 10);
  return `${before}\n## [Unreleased]\n\n## [${version}] - ${today}\n${after}`;
}
