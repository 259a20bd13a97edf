// npm run release:address -- URL: writes the address of the repository wherever it belongs: into the package.json files
// of the published packages and of the top, into their READMEs, and into SECURITY.md. Once more changes nothing, and
// another address replaces the former one.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { main, root } from './processes.mjs';
import { addressFields, parseAddress } from './repository-address.mjs';
import { publishedPackages } from './workspaces.mjs';
import { writeChanged } from './write-changed.mjs';

/** Which words of a text lead to which page of the repository. */
const PACKAGE_LINK = { words: 'documentation of nest-session', page: '#readme' };
const SECURITY_LINK = { words: 'the page of this repository on GitHub', page: '/security' };

/**
 * Writes the address into the files below a folder, which has them as the repository has.
 * @throws Error before anything is written
 */
export function writeAddress(top, address) {
  const folders = publishedPackages().map(({ folder }) => folder);
  const texts = [
    ...['', ...folders].map((folder) => [join(top, folder, 'package.json'), (text) => manifest(text, address, folder)]),
    ...folders.map((folder) => [join(top, folder, 'README.md'), (text) => linked(text, address, PACKAGE_LINK)]),
    [join(top, 'SECURITY.md'), (text) => linked(text, address, SECURITY_LINK)],
  ].map(([path, change]) => [path, inFile(path, change)]);
  for (const [path, text] of texts) writeChanged(path, text);
}

function inFile(path, change) {
  try {
    return change(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new Error(`${path}: ${error.message}`);
  }
}

/** With the fields of the address behind the license. */
function manifest(text, address, folder) {
  const fields = addressFields(address, folder);
  const others = Object.entries(JSON.parse(text)).filter(([name]) => !(name in fields));
  const behind = others.findIndex(([name]) => name === 'license') + 1;
  const all = [...others.slice(0, behind), ...Object.entries(fields), ...others.slice(behind)];
  return `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`;
}

/** With a link at the words, or with another target of the link that is there. */
function linked(text, address, { words, page }) {
  const pattern = new RegExp(`\\[?(${words.replaceAll(' ', '\\s+')})(?:\\]\\([^)]*\\))?`);
  if (!pattern.test(text)) throw new Error(`has no "${words}", which the address would be linked to. Write it there.`);
  return text.replace(pattern, `[$1](${address}${page})`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    const address = parseAddress(process.argv[2]);
    writeAddress(root, address);
    console.log(`The packages are at ${address}. Look at the changes with git diff, and commit them.`);
  });
}
