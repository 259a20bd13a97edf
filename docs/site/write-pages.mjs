// Copies the pages into the folder of the site. Their links lead to files of the repository; in the site they lead to
// its pages, and for what is no page to the repository. As long as that has no address, the words stay without a link.
import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { address, pages, read, top } from './pages.mjs';

// Code comes first: what looks like a link there is none.
const CODE_OR_LINK = /^```[\s\S]*?^```|(?<!!)\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)|`[^`\n]*`/gm;

/** @throws Error that names a link to a file that does not exist */
export function writePages(target) {
  for (const [path, page] of Object.entries(pages)) {
    mkdirSync(dirname(join(target, page)), { recursive: true });
    writeFileSync(join(target, page), withLinks(read(path), path));
  }
  cpSync(join(top, 'docs/pictures'), join(target, 'pictures'), { recursive: true });
  for (const name of ['icon.svg', 'hero.svg']) cpSync(join(top, 'docs/site', name), join(target, 'public', name));
}

function withLinks(text, path) {
  return text
    .replace(CODE_OR_LINK, (all, words, link) => (link ? linked(words, link, path) : all))
    .replaceAll('](docs/pictures/', '](pictures/');
}

function linked(words, link, path) {
  if (/^(#|\w+:)/.test(link)) return `[${words}](${link})`;
  const [file, heading] = link.split('#');
  const found = posix.join(posix.dirname(path), file);
  if (found in pages) {
    const page = posix.relative(posix.dirname(pages[path]), pages[found]);
    return `[${words}](${page}${heading ? `#${heading}` : ''})`;
  }
  if (!existsSync(join(top, found))) throw new Error(`${path} links to ${link}, which is not there`);
  return address ? `[${words}](${address}/blob/main/${found})` : words;
}
