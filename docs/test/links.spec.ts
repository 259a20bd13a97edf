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
    'docs/evidence',
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

  it('lead from docs/README.md to every page', () => {
    const pages = [...texts.keys()].filter(
      (path) => /^docs\/(evidence\/)?[\w-]+\.md$/.test(path) && path !== 'docs/README.md',
    );
    const linked = links(texts.get('docs/README.md')!).map((target) => `docs/${target.split('#')[0]}`);
    expect(pages.filter((path) => !linked.includes(path))).toEqual([]);
  });

  // npm shows the README of a package without the rest of the repository.
  it('stay inside the README of a package that is published', () => {
    const leaving = relativeLinks().filter(({ path, target }) => PUBLISHED.test(path) && !target.startsWith('#'));
    expect(leaving).toEqual([]);
  });
});

// The packages on npm have no folder of documentation, and nothing names an address of it.
it('messages and READMEs of packages name pages of the documentation by their titles', async () => {
  const titles = [...texts].flatMap(([path, text]) =>
    /^docs\/[\w-]+\.md$/.test(path) ? [/^# (.*)$/m.exec(text)?.[1]] : [],
  );
  const sources = await Promise.all((await readdir(join(ROOT, 'packages'))).map((name) => sourcesOf(name)));
  const published = [...texts].flatMap(([path, text]) => (PUBLISHED.test(path) ? [text] : []));
  const named = [...sources.flat(), ...published].flatMap((text) =>
    [...text.matchAll(/\bpage "([^"]+)" of the documentation|\bseePage\('([^']+)'\)/g)].map(
      ([, told, seen]) => told ?? seen,
    ),
  );
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((title) => !titles.includes(title))).toEqual([]);
  // Comments for contributors are not documentation of an option, and no message.
  const told = [
    ...sources.flat().flatMap((text) => text.match(/'[^'\n]*'|`[^`]*`|\/\*\*.*?\*\//gs) ?? []),
    ...published,
  ];
  expect(told.filter((text) => text.includes('docs/'))).toEqual([]);
});

async function sourcesOf(name: string): Promise<string[]> {
  const folder = join(ROOT, 'packages', name, 'src');
  const files = await readdir(folder, { recursive: true });
  const modules = files.filter((file) => file.endsWith('.ts') && !file.endsWith('lua-sources.ts'));
  return Promise.all(modules.map((file) => readFile(join(folder, file), 'utf8')));
}

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
