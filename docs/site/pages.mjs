// Which files of the repository are pages of the site.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { entryPoints } from '../../.dev/entry-points.mjs';

/** The top of the repository. */
export const top = fileURLToPath(new URL('../../', import.meta.url));

/** Where the repository is, such as `https://github.com/owner/name`; undefined until a person has set it. */
export const address = JSON.parse(read('package.json')).repository?.url.replace(/^git\+|\.git$/g, '');

/** Where the site begins: GitHub serves that of a repository below its name. */
export const base = address ? `/${address.split('/').at(-1)}/` : '/';

/** By their paths in the repository, the paths of the pages in the site. */
export const pages = {
  'docs/site/home.md': 'index.md',
  'README.md': 'introduction.md',
  'CHANGELOG.md': 'changelog.md',
  'CONTRIBUTING.md': 'contributing.md',
  'SECURITY.md': 'security-policy.md',
  'docs/README.md': 'documentation.md',
  ...pagesIn('docs', ''),
  ...pagesIn('docs/evidence', 'evidence/'),
};

/** What can be imported, without what is outside of semantic versioning. */
export function publicEntryPoints() {
  return entryPoints().filter(({ name }) => !name.endsWith('/internal'));
}

/**
 * The groups of docs/README.md with the pages to which they lead, each page once: its title, its path in the site and a
 * question.
 */
export function contents() {
  const [, ...groups] = read('docs/README.md').split(/^## /m);
  const listed = new Set();
  return groups.map((group) => ({
    title: group.slice(0, group.indexOf('\n')),
    items: linksIn(group).filter(({ path }) => {
      const isNew = path in pages && !listed.has(path);
      listed.add(path);
      return isNew;
    }),
  }));
}

/** Where the page of what can be imported by this name is. */
export function referencePage(name) {
  return `reference/${name}/index.md`;
}

export function read(path) {
  return readFileSync(join(top, path), 'utf8');
}

function pagesIn(folder, prefix) {
  const names = readdirSync(join(top, folder)).filter((name) => name.endsWith('.md') && name !== 'README.md');
  return Object.fromEntries(names.map((name) => [`${folder}/${name}`, `${prefix}${name}`]));
}

/** The pages to which a group leads. An item of a list begins with the question that they answer. */
function linksIn(group) {
  return group.split('\n').flatMap((line) =>
    [...line.matchAll(/\]\(([^)#]+\.md)/g)].map(([, link]) => {
      const path = join('docs', link);
      return { path, page: pages[path], title: titleOf(path), question: /^- (.*?\?) \[/.exec(line)?.[1] };
    }),
  );
}

function titleOf(path) {
  return /^# (.*)$/m.exec(read(path))[1];
}
