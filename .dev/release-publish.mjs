// node .dev/release-publish.mjs FOLDER: publishes the tarballs of a folder, which were packed and tested before. What
// npm has already is left out, so it can be called again after it has failed. With --dry-run, nothing is asked or sent.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { capture, main, run, runQuietly } from './processes.mjs';
import { SET_ADDRESS } from './repository-address.mjs';

await main(async () => {
  const { values, positionals } = parseArgs({ options: { 'dry-run': { type: 'boolean' } }, allowPositionals: true });
  const packages = await packagesIn(resolve(positionals[0] ?? ''));
  for (const each of packages) {
    const code = await (values['dry-run'] ? publish(each, 'latest', '--dry-run', '--offline') : publishOnce(each));
    if (code !== 0) return code;
  }
  return 0;
});

/**
 * Resolves to the path, name and version of each.
 * @throws Error when they cannot be released together, before any is
 */
async function packagesIn(folder) {
  const paths = readdirSync(folder).flatMap((name) => (name.endsWith('.tgz') ? [join(folder, name)] : []));
  const packages = [];
  for (const path of paths) {
    const manifest = JSON.parse(await runQuietly('tar', ['-xzOf', path, 'package/package.json']));
    if (!manifest.repository?.url) throw new Error(`${path} has no address of the repository: call ${SET_ADDRESS}`);
    packages.push({ path, name: manifest.name, version: manifest.version });
  }
  const versions = [...new Set(packages.map(({ version }) => version))];
  if (versions.length !== 1)
    throw new Error(`${folder} has not one version, but these: ${versions.join(', ') || 'none'}`);
  return packages;
}

async function publishOnce({ path, name, version }) {
  const published = await view(`${name}@${version}`, 'dist.integrity');
  if (published === undefined) return publish({ path }, tagOf(version, await view(name, 'dist-tags.latest')));
  const packed = `sha512-${createHash('sha512').update(readFileSync(path)).digest('base64')}`;
  if (published !== packed) {
    throw new Error(`npm has another ${name}@${version}. A version cannot be replaced: release the next one.`);
  }
  console.log(`npm has ${name}@${version} already`);
  return 0;
}

/** What `npm install` without a version finds is the highest version of all, but none to try. */
function tagOf(version, latest = '0.0.0') {
  if (version.includes('-')) return 'next';
  return isLower(version, latest) ? `release-${version.split('.')[0]}` : 'latest';
}

function isLower(version, other) {
  const [ours, theirs] = [version, other].map((each) => each.split(/[.-]/).slice(0, 3).map(Number));
  const first = ours.findIndex((number, i) => number !== theirs[i]);
  return first >= 0 && ours[first] < theirs[first];
}

function publish({ path }, tag, ...options) {
  return run('npm', ['publish', path, '--access', 'public', '--tag', tag, '--loglevel=warn', ...options]);
}

/** Resolves to undefined when npm has nothing of that. */
async function view(what, field) {
  const { code, output } = await capture('npm', ['view', what, field, '--loglevel=error']);
  if (code === 0) return output.trim() || undefined;
  if (/\bE404\b/.test(output)) return undefined;
  throw new Error(`npm view ${what} failed:\n${output}`);
}
