import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { anchors, links } from './support/markdown.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PUBLISHED = /^(packages|libs)\//;

let texts: Map<string, string>;

beforeAll(async () => {
  const inside = async (folder: string) => (await readdir(join(ROOT, folder))).map((name) => join(folder, name));
  const folders = [
    '.',
    'docs',
    'docs/recipes',
    'bench',
    ...(await Promise.all(['packages', 'libs', 'examples'].map(inside))).flat(),
  ];
  const paths = (await Promise.all(folders.map(inside))).flat().filter((path) => path.endsWith('.md'));
  const entries = paths.map(async (path) => [path, await readFile(join(ROOT, path), 'utf8')] as const);
  texts = new Map(await Promise.all(entries));
});

describe('the links of the documentation', () => {
  it('lead to files and headings that exist', () => {
    const broken = relativeLinks().filter(({ path, target }) => !exists(path, target));
    expect(relativeLinks().length).toBeGreaterThan(50);
    expect(broken).toEqual([]);
  });

  // npm shows the README of a package without the rest of the repository.
  it('stay inside the README of a package that is published', () => {
    const leaving = relativeLinks().filter(({ path, target }) => PUBLISHED.test(path) && !target.startsWith('#'));
    expect(leaving).toEqual([]);
  });
});

function relativeLinks(): { path: string; target: string }[] {
  const all = [...texts].flatMap(([path, text]) => links(text).map((target) => ({ path, target })));
  return all.filter(({ target }) => !/^https?:/.test(target));
}

function exists(path: string, target: string): boolean {
  const [file = '', anchor] = target.split('#');
  const absolute = file === '' ? join(ROOT, path) : resolve(ROOT, dirname(path), file);
  if (!existsSync(absolute)) return false;
  return anchor === undefined || anchors(texts.get(absolute.slice(ROOT.length)) ?? '').includes(anchor);
}
