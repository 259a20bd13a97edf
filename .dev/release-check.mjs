// npm run release:check -- TAG URL: whether the packages can be released as the tag says, from the repository at the
// address: they all have its version and that address, and CHANGELOG.md has a heading for the version.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { main, root } from './processes.mjs';
import { addressFields, parseAddress, SET_ADDRESS } from './repository-address.mjs';
import { publishedPackages } from './workspaces.mjs';

await main(async () => {
  const [, , tag = '', url] = process.argv;
  const address = parseAddress(url);
  const version = tag.replace(/^v/, '');
  const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
  const problems = [];
  if (tag !== `v${version}`) problems.push(`The tag is "${tag}", and must be "v" and a version, such as v1.0.0`);
  for (const { folder, manifest } of publishedPackages()) {
    if (manifest.version !== version) problems.push(`${folder}/package.json has version ${manifest.version}`);
    const isHere = Object.entries(addressFields(address, folder)).every(([name, value]) =>
      isDeepStrictEqual(manifest[name], value),
    );
    if (!isHere) {
      problems.push(
        `${folder}/package.json ${manifest.repository ? `does not have the address ${address}` : 'has no address'}`,
      );
    }
  }
  if (!changelog.includes(`\n## [${version}] - `))
    problems.push(`CHANGELOG.md has no heading "## [${version}] - DATE"`);
  if (problems.length === 0) return 0;
  const ways = `These write what is missing:\n${SET_ADDRESS}\nnpm run release:version -- ${version || '1.0.0'}`;
  console.error(`${tag} cannot be released:\n${problems.join('\n')}\n\n${ways}\nCommit, and move the tag there.`);
  return 1;
});
