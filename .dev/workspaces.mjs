// The folders of the repository that are compiled, and the packages among them that are published.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './processes.mjs';

/** `folder` is relative to the top of the repository; `manifest` is the content of the package.json file. */
export function workspaces() {
  return ['packages', 'libs', 'apps']
    .flatMap((parent) => readdirSync(join(root, parent)).map((name) => `${parent}/${name}`))
    .filter((folder) => existsSync(join(root, folder, 'tsconfig.json')))
    .map((folder) => ({ folder, manifest: manifestIn(folder) }));
}

export function publishedPackages() {
  return workspaces().filter(({ manifest }) => !manifest.private);
}

function manifestIn(folder) {
  return JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
}
