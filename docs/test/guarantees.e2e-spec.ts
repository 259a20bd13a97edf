import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const REPORTER = join(ROOT, '.dev/guarantees.reporter.mjs');

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

const TESTS = 'docs/evidence/tests.json';
/** The titles that a link with the name of a file stands for. */
const TITLES = JSON.parse(read(TESTS)) as Record<string, string[]>;
const EVIDENCE = ['guarantees', 'failure-modes', 'internals', 'works-with', 'managed-services'].map(
  (name) => `docs/evidence/${name}.md`,
);

/** The tests under each paragraph of a text, as the links of a list. */
function tests(text: string): { paragraph: string; list: string }[] {
  const found = text.matchAll(/^(?!- |#)(\S[^]*?)\n\n((?:- \[.*\n)+)/gm);
  return [...found].map(([, paragraph, list]) => ({ paragraph: paragraph!.split('\n\n').at(-1)!, list: list! }));
}

// The reporter checks that these tests run and pass, since it sees the results.
describe.each([...EVIDENCE, 'packages/session-core/test/parity/spring-session.md'])('%s', (document) => {
  it('names only tests that npm test, npm run test:e2e or npm run chaos runs', () => {
    const named = linksIn(document).filter(({ path }) => path.includes('/test/'));
    expect(named.length).toBeGreaterThan(10);
    for (const { title, path } of named) {
      const isThere = existsSync(join(ROOT, path)) && /\/test\/.*\.(spec|e2e-spec|chaos)\.ts$/.test(path);
      const isTitled = title !== basename(path, '.ts') || path in TITLES;
      expect({ title, path, isThere, isTitled }).toEqual({ title, path, isThere: true, isTitled: true });
    }
  });

  it('is in the list of documents of the reporter', () => {
    const { jest } = JSON.parse(read('package.json'));
    expect(jest.reporters).toContainEqual([
      '<rootDir>/.dev/guarantees.reporter.mjs',
      { documents: expect.arrayContaining([document]), tests: TESTS },
    ]);
  });
});

it('docs/evidence/tests.json has titles of the files that a page links, and of no other one', () => {
  const linked = new Set(EVIDENCE.flatMap(linksIn).map(({ path }) => path));
  expect(Object.keys(TITLES).filter((path) => !linked.has(path))).toEqual([]);
  expect(Object.values(TITLES).filter((titles) => titles.length === 0)).toEqual([]);
});

/** The links of a document, with paths from the root. */
function linksIn(document: string): { title: string; path: string }[] {
  const found = read(document).matchAll(/\[([^\]]+)\]\(([^)\s]+)\)/g);
  return [...found].map(([, title, path]) => ({ title: title!, path: join(dirname(document), path!) }));
}

it('docs/evidence/guarantees.md names tests for every sentence', () => {
  const text = read('docs/evidence/guarantees.md');
  const paragraphs = text
    .split(/^## .*$/m)
    .slice(1)
    .flatMap((section) => section.trim().split(/\n\n/));
  expect(paragraphs.filter((part) => part.startsWith('- ['))).toHaveLength(paragraphs.length / 2);
  expect(tests(text)).toHaveLength(paragraphs.length / 2);
});

it('docs/evidence/failure-modes.md names tests for every row of the tables of faults', () => {
  const text = read('docs/failure-modes.md');
  const listed = read('docs/evidence/failure-modes.md');
  const rowsIn = (heading: string) => {
    const [, section = ''] = text.split(`\n## ${heading}\n`);
    const [table = ''] = section.split(/^## /m);
    return [...table.matchAll(/^\| (.+?) +\|/gm)].map(([, row]) => row!).slice(2);
  };
  const rows = [...rowsIn('When Redis fails'), ...rowsIn('When the application fails')];
  expect(rows.length).toBeGreaterThan(20);
  expect(tests(listed).map(({ paragraph }) => paragraph)).toEqual(rows.map((row) => `**${row}**`));
});

describe.each([
  { page: 'docs/evidence/asvs.md', headings: ['## V7: sessions', '## V3.3: cookies', '## Other chapters'] },
])('$page', ({ page, headings }) => {
  const isTest = (cell: string) => {
    const [, path] = /^\[.+\]\((\S+\/test\/\S+\.(?:spec|e2e-spec|chaos)\.ts)\)$/.exec(cell) ?? [];
    return path !== undefined && existsSync(join(ROOT, dirname(page), path));
  };

  it('is in the list of documents of the reporter', () => {
    expect(JSON.parse(read('package.json')).jest.reporters[0][1].documents).toContain(page);
  });

  it.each(headings)('names in each row under "%s" a test, or why it is the application\'s', (heading) => {
    expect(rowsIn(page, heading).length).toBeGreaterThan(4);
    for (const { what, how, test } of rowsIn(page, heading)) {
      const isApplications = test === '-' && how.startsWith('The application: ');
      expect({ what, test, isHeld: isApplications || isTest(test) }).toEqual({ what, test, isHeld: true });
    }
  });
});

it.each([
  ['## V7: sessions', [3, 4, 2, 5, 3, 2].flatMap((rows, i) => numbered(`7.${i + 1}`, rows))],
  ['## V3.3: cookies', numbered('3.3', 5)],
])('docs/evidence/asvs.md has every row of %s', (heading, numbers) => {
  expect([...new Set(rowsIn('docs/evidence/asvs.md', heading).map(({ what }) => what))]).toEqual(numbers);
});

/** The rows of the table under a heading of a page. */
function rowsIn(page: string, heading: string): { what: string; how: string; test: string }[] {
  const [, section = ''] = read(page).split(`\n${heading}\n`);
  const [table = ''] = section.split(/^#/m);
  const rows = [...table.matchAll(/^\| (.+) \|$/gm)].map(([, row]) => row!.split(/ +\| +/));
  return rows.slice(2).map((cells) => ({ what: cells[0]!, how: cells.at(-2)!, test: cells.at(-1)!.trim() }));
}

/** `7.1.1` to `7.1.3` for `7.1` and 3. */
function numbered(chapter: string, rows: number): string[] {
  return Array.from({ length: rows }, (_, i) => `${chapter}.${i + 1}`);
}

describe('the reporter', () => {
  let folder: string;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'guarantees-'));
    writeFileSync(join(folder, 'document.md'), '- [holds %s](held.spec.cjs)\n');
    writeFileSync(join(folder, 'other.spec.cjs'), "it('is another', () => expect(1).toBe(1));");
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  it.each([
    { what: 'passes', code: "it.each(['a', 'b'])('holds %s', () => expect(1).toBe(1));", says: '' },
    { what: 'is skipped', code: "it.skip('holds a', () => expect(1).toBe(1));", says: 'it is pending' },
    {
      what: 'is skipped for one of its values',
      code: "it('holds a', () => expect(1).toBe(1)); it.skip('holds b', () => expect(1).toBe(1));",
      says: 'it is pending',
    },
    {
      what: 'is left out, since another one is the only one',
      code: "it('holds a', () => expect(1).toBe(1)); it.only('does more', () => expect(1).toBe(1));",
      says: 'it is pending',
    },
    { what: 'is emptied', code: "it('holds a', () => {});", says: 'it asserts nothing' },
    { what: 'is a todo', code: "it.todo('holds a');", says: 'it is todo' },
    { what: 'fails', code: "it('holds a', () => expect(1).toBe(2));", says: 'it is failed' },
    {
      what: 'is commented out',
      code: "// it('holds a', () => expect(1).toBe(1));\nit('is another', () => expect(1).toBe(1));",
      says: 'no such test ran',
    },
    { what: 'is in a file that is gone', code: undefined, says: 'no such test ran' },
  ])('fails a run unless a named test passes: a test that $what', ({ code, says }) => {
    const file = join(folder, 'held.spec.cjs');
    if (code !== undefined) writeFileSync(file, code);
    const { status, stderr } = runJest([]);
    rmSync(file, { force: true });
    const said = /FAILED: document\.md names "holds %s" in held\.spec\.cjs: (.*)/.exec(stderr)?.[1] ?? '';
    expect({ status, said }).toEqual({ status: says === '' ? 0 : 1, said: says });
  });

  it('reads the links in the last cells of a table as well', () => {
    writeFileSync(
      join(folder, 'document.md'),
      '| a | [holds %s](held.spec.cjs) |\n| - | [no test](other.md), either |\n',
    );
    const { status, stderr } = runJest([]);
    expect(status).toBe(1);
    expect(stderr.match(/^FAILED: .*$/gm)).toEqual([
      'FAILED: document.md names "holds %s" in held.spec.cjs: no such test ran',
    ]);
    writeFileSync(join(folder, 'document.md'), '- [holds %s](held.spec.cjs)\n');
  });

  it('reads the titles that a link with the name of a file stands for', () => {
    writeFileSync(join(folder, 'document.md'), '- [held.spec](held.spec.ts)\n');
    writeFileSync(join(folder, 'tests.json'), JSON.stringify({ 'held.spec.cjs': ['holds %s'] }));
    const { status, stderr } = runJest([], { tests: 'tests.json' });
    expect(status).toBe(1);
    expect(stderr.match(/^FAILED: .*$/gm)).toEqual([
      'FAILED: tests.json names "holds %s" in held.spec.cjs: no such test ran',
    ]);
    writeFileSync(join(folder, 'document.md'), '- [holds %s](held.spec.cjs)\n');
  });

  it('ignores files and tests that a run filters out by name', () => {
    expect(runJest(['other.spec']).status).toBe(0);
    expect(runJest(['--testNamePattern', 'another']).status).toBe(0);
    expect(runJest([]).status).toBe(1);
  });

  function runJest(args: readonly string[], more = {}): { status: number | null; stderr: string } {
    const reporters = [[REPORTER, { documents: ['document.md'], ...more }], 'default'];
    const config = { rootDir: folder, testRegex: '\\.spec\\.cjs$', reporters, transform: {} };
    const jest = join(ROOT, 'node_modules/jest/bin/jest.js');
    const all = [jest, '--config', JSON.stringify(config), ...args];
    const { status, stderr } = spawnSync(process.execPath, all, { encoding: 'utf8', env: { ...process.env, CI: '1' } });
    return { status, stderr };
  }
});
