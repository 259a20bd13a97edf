import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { codeBlocks, section } from './support/markdown.js';
import { ROOT } from './support/compiler.js';
import { RECIPES, recipeText } from './support/recipes.js';

/** What the tests use as tools: not beside sessions. */
const TOOLS = [
  '@jest/globals',
  '@opentelemetry/sdk-trace-node',
  'axe-core',
  'expect-type',
  'fast-check',
  'jose',
  'playwright-core',
];
/** Imported for their types alone. */
const TYPES = ['express', 'fastify'];
const OF_THE_TESTS = [
  ...TOOLS,
  ...TYPES,
  'cluster-key-slot',
  'ioredis-5',
  'selfsigned',
  'tough-cookie',
  'typescript',
  'yaml',
  '@angular-devkit/schematics',
];

interface Row {
  readonly name: string;
  readonly versions: readonly string[];
  readonly title?: string;
  readonly path?: string;
}

const EVIDENCE = 'docs/evidence/works-with.md';

let text: string;
let evidence: string;

beforeAll(async () => {
  text = await readFile(join(ROOT, 'docs/works-with.md'), 'utf8');
  evidence = await readFile(join(ROOT, EVIDENCE), 'utf8');
});

/** The rows of the table under a heading of the page, or of that with the tests. */
function rowsOf(heading: string): Row[] {
  const page = heading === COMPANIONS ? evidence : text;
  const lines = [...section(page, heading).matchAll(/^\| (.+) \|$/gm)].slice(2);
  return lines.map(([, line]) => {
    const [name = '', versions = '', ...others] = line!.split(' | ').map((cell) => cell.trim());
    const { title, path } = /^\[(?<title>.+)\]\((?<path>.+)\)$/.exec(others.at(-1) ?? '')?.groups ?? {};
    return { name: name.replaceAll('`', ''), versions: versions.split(', '), ...(title && path && { title, path }) };
  });
}

const OF_NESTJS = 'NestJS, ioredis and what belongs to them';
const [MATRIX, ORMS] = ['docs/test/works-with/matrix', 'docs/test/works-with/orms'];
const COMPANIONS = 'Packages beside sessions';

const json = async (path: string) => JSON.parse(await readFile(join(ROOT, path), 'utf8'));

const latestFirst = (versions: Iterable<string>) =>
  [...new Set(versions)].sort((a, b) => b.localeCompare(a, undefined, { numeric: true }));

describe('docs/works-with.md', () => {
  it('names the versions that npm run test:matrix installs', async () => {
    const entries = await readdir(join(ROOT, MATRIX), { withFileTypes: true });
    const folders = entries.filter((entry) => entry.isDirectory());
    const manifests = await Promise.all(folders.map(({ name }) => json(`${MATRIX}/${name}/package.json`)));
    const versions = new Map<string, string[]>();
    for (const [name, version] of manifests.flatMap(({ dependencies }) => Object.entries<string>(dependencies))) {
      if (!name.startsWith('@types/')) versions.set(name, latestFirst([...(versions.get(name) ?? []), version]));
    }
    const told = new Map(rowsOf(OF_NESTJS).map((row) => [row.name, row.versions]));
    expect(told).toEqual(versions);
  });

  it('names what npm run test:orms installs beside NestJS', async () => {
    const entries = await readdir(join(ROOT, ORMS), { withFileTypes: true });
    const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    const manifests = await Promise.all(names.map((name) => json(`${ORMS}/${name}/package.json`)));
    const installed = manifests.map(({ dependencies }) => Object.entries(dependencies as Record<string, string>));
    const isOfAll = ([name, version]: [string, string]) =>
      manifests.every(({ dependencies }) => dependencies[name] === version);
    const listed = (all: [string, string][]) =>
      all.filter((each) => !isOfAll(each)).map(([name, version]) => `${name} ${version}`);
    const told = rowsOf('ORMs').map(({ name, versions }) => [
      name.toLowerCase(),
      versions.map((each) => each.replaceAll('`', '')),
    ]);
    expect(told).toEqual(names.map((name, i) => [name.replace('-', ''), listed(installed[i]!)]));
  });

  it('names the servers and the versions of Node.js that npm run nightly runs', async () => {
    const script = await readFile(join(ROOT, '.dev/other-versions.mjs'), 'utf8');
    const others = [...script.matchAll(/^ {2}'(redis|valkey|node)-([\d.]+)':/gm)];
    const of = (program: string) => others.flatMap(([, each, version]) => (each === program ? [version!] : []));
    const [, oldest = ''] = /Redis (\d+\.\d+) or later/.exec(await readFile(join(ROOT, 'README.md'), 'utf8')) ?? [];
    expect(rowsOf('Servers and Node.js')).toEqual([
      { name: 'Redis', versions: latestFirst([...of('redis'), oldest]) },
      { name: 'Valkey', versions: latestFirst(of('valkey')) },
      { name: 'Node.js', versions: latestFirst(of('node')) },
    ]);
  });

  it('names the installed version of each package', async () => {
    const { packages } = (await json('package-lock.json')) as { packages: Record<string, { version: string }> };
    const installed = rowsOf(COMPANIONS).map(({ name }) => ({
      name,
      versions: latestFirst(
        Object.entries(packages).flatMap(([path, { version }]) => (isDirect(path, name) ? [version] : [])),
      ),
    }));
    expect(rowsOf(COMPANIONS).map(({ name, versions }) => ({ name, versions }))).toEqual(installed);
  });

  it('lists the packages that have a row', () => {
    const [, listed = ''] = section(text, COMPANIONS).split(':\n\n');
    const names = [...listed.split('.\n')[0]!.matchAll(/`([^`]+)`/g)].map(([, name]) => name);
    expect(names).toEqual([...new Set(rowsOf(COMPANIONS).map(({ name }) => name))]);
  });

  it('links tests that use the package of their row', async () => {
    const rows = rowsOf(COMPANIONS);
    expect(rows.length).toBeGreaterThan(20);
    for (const { name, path } of rows) {
      const file = resolve(ROOT, 'docs/evidence', path ?? 'no link');
      expect({ name, file, isUsed: (await sourcesOf(file)).some((source) => uses(source, name)) }).toEqual({
        name,
        file,
        isUsed: true,
      });
    }
  });

  it('has a row for every package that the tests and the recipes put beside sessions', async () => {
    const named = [...rowsOf(OF_NESTJS), ...rowsOf(COMPANIONS)].map(({ name }) => name);
    const known = new Set([...named, ...OF_THE_TESTS]);
    const files = (await Promise.all((await readdir(join(ROOT, 'packages'))).map(testsOf))).flat();
    const sources = await Promise.all(files.map((file) => readFile(file, 'utf8')));
    const used = [...sources, ...recipePrograms()].flatMap(importedPackages);
    expect(used.length).toBeGreaterThan(100);
    const isOurs = (name: string) => /^(node:|@nest-session\/)/.test(name);
    expect([...new Set(used)].filter((name) => !isOurs(name) && !known.has(name))).toEqual([]);
  });

  it('is read by the reporter, which fails when a linked test does not pass', async () => {
    const { jest } = await json('package.json');
    expect(jest.reporters[0][1].documents).toContain(EVIDENCE);
  });
});

/**
 * Whether a path of the lock file is the package that the tests import: at the top, or in the folder of a workspace.
 */
function isDirect(path: string, name: string): boolean {
  return (
    path === `node_modules/${name}` || (/^packages\/[^/]+\/node_modules\//.test(path) && path.endsWith(`/${name}`))
  );
}

/** The text of a test, and of what it is made of: its imports in this repository, and its companion program. */
async function sourcesOf(file: string, seen = new Set<string>()): Promise<string[]> {
  if (seen.has(file) || !existsSync(file)) return [];
  seen.add(file);
  const source = await readFile(file, 'utf8');
  const imported = [...source.matchAll(/from '(\.[^']+)\.js'/g)].map(([, path]) =>
    resolve(dirname(file), `${path}.ts`),
  );
  const companion = file.replace(/\.(e2e-)?spec\.ts$/, '.companion.ts');
  const others = [...imported.filter((path) => path.includes('/test/')), companion];
  return [source, ...(await Promise.all(others.map((path) => sourcesOf(path, seen)))).flat()];
}

/** Whether the package is imported, or named by a path or a title. */
function uses(source: string, name: string): boolean {
  return new RegExp(`(^|['\`/ ])${name}(['\`/ ]|$)`, 'm').test(source);
}

async function testsOf(folder: string): Promise<string[]> {
  const tests = join(ROOT, 'packages', folder, 'test');
  if (!existsSync(tests)) return [];
  const files = await readdir(tests, { recursive: true });
  return files.filter((file) => file.endsWith('.ts')).map((file) => join(tests, file));
}

/** The code of the recipes, which a test runs as it is printed. */
function recipePrograms(): string[] {
  return [...RECIPES.keys()].flatMap((recipe) => codeBlocks(recipeText(recipe), 'ts'));
}

function importedPackages(source: string): string[] {
  const specifiers = source.matchAll(/(?:^import |^\} |import\()[^'\n]*'([^.'][^']*)'/gm);
  return [...specifiers].flatMap(([, specifier]) => /^(@[^/]+\/[^/]+|[^/]+)/.exec(specifier!)?.[0] ?? []);
}
