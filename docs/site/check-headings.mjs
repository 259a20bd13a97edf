// VitePress checks that the page of a link exists, but not its heading.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { base } from './pages.mjs';

/** @throws Error that lists the links to headings that no page has */
export function checkHeadings(dist) {
  const files = readdirSync(dist, { encoding: 'utf8', recursive: true }).filter((name) => name.endsWith('.html'));
  const texts = new Map(files.map((name) => [name, readFileSync(join(dist, name), 'utf8')]));
  const ids = new Map([...texts].map(([name, text]) => [name, new Set(matches(text, / id="([^"]+)"/g))]));
  const lost = [...texts].flatMap(([name, text]) =>
    matches(text, / href="([^":]*#[^"]+)"/g)
      .filter((link) => !ids.get(fileOf(link, name))?.has(decodeURIComponent(link.split('#')[1])))
      .map((link) => `${name}: ${link}`),
  );
  if (lost.length > 0) throw new Error(`Links to headings that are not there:\n${[...new Set(lost)].join('\n')}`);
}

/** The file to which a link of the page `from` leads. */
function fileOf(link, from) {
  const [path] = link.split('#');
  if (path === '') return from;
  const { pathname } = new URL(path, `http://site${base}${from}`);
  return decodeURI(pathname).slice(base.length) + (pathname.endsWith('/') ? 'index.html' : '.html');
}

function matches(text, pattern) {
  return [...text.matchAll(pattern)].map(([, found]) => found);
}
