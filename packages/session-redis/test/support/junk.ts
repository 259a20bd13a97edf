import fc from 'fast-check';
import { codePoint } from './code-point.js';

/** Values that are not tokens. */
export const MALFORMED = [
  '',
  '{x}',
  'expires:x',
  '*',
  '__proto__',
  'constructor',
  'undefined',
  'null',
  '[object Object]',
  'expires:'.padEnd(43, 'a'),
  'moved:'.padEnd(43, 'a'),
  '*'.repeat(43),
  '{'.padEnd(42, 'a') + '}',
  'a'.repeat(22),
  'a'.repeat(42),
  'a'.repeat(44),
  'a'.repeat(128),
  'a'.repeat(9 * 1024),
  '%0d%0aSet-Cookie:%20SESSION=x',
  `%61${'a'.repeat(42)}`,
  `"${'a'.repeat(43)}`,
  'a'.repeat(43) + '\0',
  'a'.repeat(43) + '%00',
  'ä'.repeat(43),
  'ａ'.repeat(43),
  '😀',
  '\u202e',
  's:a.b',
  'j:{"a":1}',
  '../../etc/passwd',
  "' OR 1=1 --",
  '$(id)',
  'SESSION=SESSION=',
  '\t',
];
const COOKIE_NAMES = [
  'SESSION',
  'session',
  'SESSION ',
  '__proto__',
  'constructor',
  'toString',
  '__Host-SESSION',
  '',
  '$Path',
];
// Headers that Node.js itself rejects: misplaced line breaks, and more than 16 KB.
export const NO_REQUESTS = [400, 431];
const LINE_BREAKS = ['\r\n', '\n', '\r', '\r\n ', '\r\nCookie: SESSION=x', '\r\n\r\n', '\r\nX-Auth-Token: x'];

/** Arbitrary text. */
export const junk = fc.oneof(
  fc.constantFrom(...MALFORMED),
  fc.string({ unit: codePoint, maxLength: 60 }),
  fc.string({ unit: 'grapheme', maxLength: 60 }),
  fc.string({ unit: 'binary-ascii', maxLength: 60 }),
);
const pair = fc.tuple(fc.constantFrom(...COOKIE_NAMES), junk).map(([name, value]) => `${name}=${value}`);
const header = fc.oneof(
  { weight: 4, arbitrary: fc.array(pair, { maxLength: 20 }).map((pairs) => pairs.join('; ')) },
  { weight: 1, arbitrary: junk },
  { weight: 1, arbitrary: fc.tuple(pair, fc.constantFrom(...LINE_BREAKS), pair).map((parts) => parts.join('')) },
);
const field = fc.constantFrom('Cookie', 'X-Auth-Token', 'COOKIE', '__proto__', 'constructor', 'toString', 'X-Anything');
/** Header lines with arbitrary content, most often cookies. */
export const lines = fc.array(
  fc.tuple(field, header).map(([name, value]) => `${name}: ${value}`),
  { minLength: 1, maxLength: 4 },
);
