import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Logger, type LoggerService } from '@nestjs/common';
import { OneLineLogger, shownError, shownText, textOf } from '../../src/internal.js';
import { shownStack } from '../../src/logging/shown-error.js';
import { WarnOnce } from '../../src/logging/warn-once.js';

const PACKAGES = fileURLToPath(new URL('../../../', import.meta.url));

// Ends of lines, colors, C1, an end of line of JavaScript, and text from right to left.
const EVIL = 'evil\r\n\u001b[31m[Nest] 1 - LOG [Auth] admin signed in\u0000\u007f\u009b2J\u2028\u202e';
const RAW = /[\p{Cc}\u2028\u202e]/u;

const seen: unknown[][] = [];
const record = (...args: unknown[]) => void seen.push(args);
const recorder: LoggerService = { verbose: record, log: record, warn: record, error: record };

beforeEach(() => {
  seen.length = 0;
  Logger.overrideLogger(recorder);
});

describe('OneLineLogger', () => {
  const logger = new OneLineLogger('Test');

  it.each(['verbose', 'log', 'warn', 'error'] as const)(
    '%s() writes one line, and nothing that commands a terminal',
    (level) => {
      logger[level](`a ${EVIL} b`);
      const [[line = '', ...others] = []] = seen;
      expect(line).not.toMatch(RAW);
      expect(line).toMatch(/^a evil\\u000d\\u000a\\u001b\[31m.* b$/);
      expect(others.at(-1)).toBe('Test');
    },
  );

  it('leaves the lines of a stack, and no other ends of lines in it', () => {
    logger.error('It failed', `Error: ${EVIL}\n    at a (b.js:1:1)\n    at ${EVIL}\n    at c`);
    const stack = String(seen[0]![1]);
    const lines = stack.split('\n');
    expect(lines).toHaveLength(4);
    expect(lines.join('')).not.toMatch(RAW);
    expect(lines.slice(1).every((line) => line.startsWith('    at '))).toBe(true);
  });

  it('leaves text of all languages', () => {
    logger.warn('Zoë 東京 🙂 "x"');
    expect(seen[0]![0]).toBe('Zoë 東京 🙂 "x"');
  });

  it('is the only logger of the packages', () => {
    const sources = readdirSync(PACKAGES)
      .map((name) => join(PACKAGES, name, 'src'))
      .flatMap((folder) => readdirSync(folder, { encoding: 'utf8', recursive: true }).map((file) => join(folder, file)))
      .filter((file) => file.endsWith('.ts'));
    expect(sources.length).toBeGreaterThan(150);
    const others = sources.filter((file) => /\bnew (?:Console)?Logger\(|\bconsole\./.test(readFileSync(file, 'utf8')));
    expect(others).toEqual([]);
  });
});

describe('an error in a log line', () => {
  it('has a quoted message', () => {
    expect(shownError(new TypeError('a "b"\nc'))).toBe('TypeError: "a \\"b\\"\\nc"');
    expect(shownError(new Error())).toBe('Error');
    expect(shownError('a\nb')).toBe('"a\\nb"');
    expect(shownError(undefined)).toBe('"undefined"');
    expect(shownError(new AggregateError([new Error('a'), new Error('b')]))).toBe('Error: "a", Error: "b"');
    expect(shownError(new AggregateError([new Error('a')], 'all failed'))).toBe('AggregateError: "all failed"');
  });

  it('shows that a thrown value has no text, instead of throwing', () => {
    const symbols = Object.assign(new Error('a'), { name: Symbol('name') });
    const messages = Object.assign(new Error('a'), { message: Object.create(null) as string });
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    for (const thrown of [Object.create(null), symbols, messages, proxy] as unknown[]) {
      const shown: unknown[] = [textOf(thrown), shownError(thrown), shownStack(thrown)];
      expect(shown).toEqual(Array.from({ length: 3 }, () => expect.any(String) as string));
    }
    expect(textOf(Object.create(null))).toBe('a value without a text');
  });

  it('has the frames of its stack, and none that its message pretends to be', () => {
    const forged = new Error(`a\n    at forged (/evil.js:1:1)\n    at ${EVIL}`);
    const [head, ...frames] = shownStack(forged).split('\n');
    expect(head).toBe(shownError(forged));
    expect(frames[0]).toContain('one-line.logger.spec.ts');
    expect(frames.join('\n')).not.toContain('forged');
  });

  it('has nothing of its stack between the message and the frames', () => {
    const stack = 'Error: b!\nadmin signed in\n    at a (b.js:1:1)';
    expect(shownStack(Object.assign(new Error('b!'), { stack }))).toBe('Error: "b!"\n    at a (b.js:1:1)');
  });

  it.each([
    ['whose message was changed later', renamed(new Error('a\n    at forged (/evil.js:1:1)'), 'b!')],
    ['without a stack', Object.assign(new Error('b!'), { stack: undefined })],
    ['with a stack of another kind', Object.assign(new Error('b!'), { stack: 'b!' })],
  ])('%s, has no frames', (_, error) => expect(shownStack(error)).toBe('Error: "b!"'));
});

/** Its stack was made with the message of before. */
function renamed(error: Error, message: string): Error {
  expect(error.stack).toContain('forged');
  return Object.assign(error, { message });
}

it('a text in a log line is quoted unless it is a plain word', () => {
  expect(['deleted-a-b_1', 'sha256:ab', 'a b', 'a\n', ''].map(shownText)).toEqual([
    'deleted-a-b_1',
    'sha256:ab',
    '"a b"',
    '"a\\n"',
    '""',
  ]);
});

it('a warning comes once for each cause, and for no more causes than the limit', () => {
  const once = new WarnOnce(2);
  for (const cause of ['a', 'a', 'b', 'c', 'b']) once.warn(cause, cause);
  expect(seen.map(([line]) => line)).toEqual(['a', 'b']);
});
