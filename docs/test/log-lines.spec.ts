import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from './support/compiler.js';
import { linesIn, logLines, type LogLine } from './support/log-lines.js';

/** A row of the tables of log lines. */
interface Row {
  readonly line: string;
  readonly level: string;
  readonly cause: string;
  readonly action: string;
}

/** The message of an error that has a line of its own. */
const MESSAGE_OF_ERROR = { path: 'packages/session-redis/src/encryption/session-encryption.ts', text: '...' };

let rows: Row[];
let lines: LogLine[];

beforeAll(async () => {
  const text = await readFile(join(ROOT, 'docs/log-lines.md'), 'utf8');
  // The tables stand under headings of their subjects.
  const tables = text.slice(text.indexOf('\n## '));
  rows = [...tables.matchAll(/^\| (`.+) \|$/gm)].map(([, row]) => rowOf(row!));
  lines = (await logLines()).filter(({ path, text: line }) => !isMessageOfError({ path, text: line }));
});

function rowOf(row: string): Row {
  const [line = '', level = '', cause = '', action = ''] = row.split(' | ').map((cell) => cell.trim());
  const [, code = ''] = /^`+(.+?)`+$/.exec(line) ?? [];
  return { line: code, level: level.replaceAll('`', ''), cause, action };
}

function isMessageOfError({ path, text }: Pick<LogLine, 'path' | 'text'>): boolean {
  return path === MESSAGE_OF_ERROR.path && text === MESSAGE_OF_ERROR.text;
}

/** Whether a row is about a line, of which it may leave out what its `...` stand for. */
function isAbout({ line, level }: Row, logged: LogLine): boolean {
  const parts = line.split('...').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  return level === logged.level && new RegExp(`^${parts.join('.*')}$`).test(logged.text);
}

describe('docs/log-lines.md', () => {
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
    expect(rows.filter(({ cause, action }) => cause === '' || action === '')).toEqual([]);
    // A row that is about every line would hide those that have none.
    expect(names.filter((name) => name.replaceAll(/[^a-z]/gi, '').length < 10)).toEqual([]);
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
