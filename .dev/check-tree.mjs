// Whether nothing lies at the top level that does not belong there, and the lock files name no registry.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './processes.mjs';

const FOLDERS = ['packages', 'libs', 'apps', 'bench', 'docs', 'examples', 'node_modules', 'coverage'];
const DOCUMENTS = ['README.md', 'CHANGELOG.md', 'LICENSE', 'CONTRIBUTING.md', 'SECURITY.md'];
const CONFIGURATION = ['nest-cli.json', 'package.json', 'package-lock.json', 'tsconfig.base.json'];

const expected = new Set([...FOLDERS, ...DOCUMENTS, ...CONFIGURATION]);
const strangers = readdirSync(root).filter((name) => !name.startsWith('.') && !expected.has(name));
const registries = ['package-lock.json', 'docs/site/package-lock.json'].flatMap((file) =>
  (readFileSync(join(root, file), 'utf8').match(/^.*"resolved": "http.*$/gm) ?? []).map(
    (line) => `${file}: ${line.trim()}`,
  ),
);

for (const name of strangers) console.error(`${name} does not belong at the top level`);
for (const line of registries) console.error(`A lock file names a registry: ${line}`);
process.exitCode = strangers.length + registries.length > 0 ? 1 : 0;
