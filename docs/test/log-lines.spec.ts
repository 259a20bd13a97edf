import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from './support/compiler.js';
import { knownLines, linesIn, logLines, type KnownLine, type LogLine } from './support/log-lines.js';

/** The message of an error that has a line of its own. */
const MESSAGE_OF_ERROR = { path: 'packages/session-redis/src/encryption/session-encryption.ts', text: '...' };

let rows: KnownLine[];
let lines: LogLine[];

beforeAll(async () => {
  rows = knownLines();
  lines = (await logLines()).filter(({ path, text: line }) => !isMessageOfError({ path, text: line }));
});

function isMessageOfError({ path, text }: Pick<LogLine, 'path' | 'text'>): boolean {
  return path === MESSAGE_OF_ERROR.path && text === MESSAGE_OF_ERROR.text;
}

/** Whether a row is about a line, of which it may leave out what its `...` stand for. */
function isAbout({ line, level }: KnownLine, logged: LogLine): boolean {
  const parts = line.split('...').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  return level === logged.level && new RegExp(`^${parts.join('.*')}$`).test(logged.text);
}

describe('what nest-session explain knows', () => {
  it('has all that the packages can write, with their levels', () => {
    expect(lines.length).toBeGreaterThan(70);
    expect(lines.filter((line) => !rows.some((row) => isAbout(row, line)))).toEqual([]);
  });

  it('has no line that cannot be written', () => {
    expect(rows.length).toBeGreaterThan(70);
    expect(rows.filter((row) => !lines.some((line) => isAbout(row, line)))).toEqual([]);
  });

  it('has one row for each line, which says what to do', () => {
    const names = rows.map(({ line }) => line);
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
    expect(rows.filter(({ means, do: action }) => means === '' || action === '')).toEqual([]);
    // A row that is about every line would hide those that have none.
    expect(names.filter((name) => name.replaceAll(/[^a-z]/gi, '').length < 10)).toEqual([]);
  });

  it('names pages of the documentation by their titles', async () => {
    const pages = await readdir(join(ROOT, 'docs'), { recursive: true });
    const texts = await Promise.all(
      pages.filter((path) => path.endsWith('.md')).map((path) => readFile(join(ROOT, 'docs', path), 'utf8')),
    );
    const titles = texts.map((text) => /^# (.*)$/m.exec(text)?.[1]);
    expect(rows.filter(({ see }) => see !== undefined && !titles.includes(see))).toEqual([]);
  });

  it('has the lines that docs/log-lines.md says to alert on', async () => {
    const page = await readFile(join(ROOT, 'docs/log-lines.md'), 'utf8');
    const named = [...page.matchAll(/^- `(.+)`$/gm)].map(([, line]) => line!);
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((name) => !rows.some(({ line, level }) => line === name && level === 'warn'))).toEqual([]);
  });
});

describe('the lines of a source', () => {
  it.each([
    ["logger.warn('Too late');", 'warn Too late'],
    ['logger.error(`${name} failed: ${reason}`);', 'error ... failed: ...'],
    ["logger.log('This ' + (many ? `and ${these}` : 'and that'));", 'log This and ... | log This and that'],
    ["const LINE = 'Is told';\nthis.#warnings.warn('once', LINE);", 'warn Is told'],
    ["function tell(what: string) { logger.log(`Is ${what}`); }\ntell('told');", 'log Is told'],
    ["new FailureLog('Fails', 'Works again');", 'error Fails: ... | log Works again'],
    ["console.warn('Is no line of a logger'); queue.push('warn');", ''],
  ])('are found: %s', (source, found) => {
    const said = linesIn('a.ts', source).map(({ level, text }) => `${level} ${text}`);
    expect(said.join(' | ')).toBe(found);
  });
});
