import type { PlainValue } from './plain-value.js';
import type { ReadingLimits } from './reading-limits.js';
import { UnreadableValueError } from './unreadable-value.error.js';

/** The name of a class, with the types in it, of an array of objects, or of an array of numbers. */
const CLASS = /^(?:\[*L?(?:[a-z_]\w*\.)+[A-Z$][\w$/]*(?:<[\w.$,<>]*>)?;?|\[+[BCDFIJSZ])$/;
const LONGEST_NAME = 500;
/** The beginning of a text, or of a number outside of texts. */
const TOKEN = /["\d-]/g;
const BEHIND_NUMBER = /[^\d.eE+-]/g;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
// Jackson reads no longer ones.
const LONGEST_NUMBER = 1000;
const BIG = /^"java\.math\.Big(?:Decimal|Integer)"$/;

/**
 * Reads the JSON of Spring's serializers: the plain one, and those that write the class of each object and list, as
 * `{"@class":"java.util.HashMap"}` and `["java.util.ArrayList",[]]`. The classes are left out. A number that JavaScript
 * does not have is a text.
 * @throws SyntaxError when it is no JSON, and UnreadableValueError beyond the limits
 */
export function readStoredJson(text: string, limits: ReadingLimits): PlainValue {
  return new Unwrapping(limits).value(JSON.parse(withoutUnsafeNumbers(text)) as PlainValue);
}

/** Step by step: a regular expression for all of a long text would need more stack than there is. */
function withoutUnsafeNumbers(text: string): string {
  const pieces: string[] = [];
  let [copied, before] = [0, ''];
  for (let start = next(TOKEN, text, 0); start < text.length;) {
    const end = text[start] === '"' ? endOfText(text, start + 1) : next(BEHIND_NUMBER, text, start);
    const token = end - start > LONGEST_NUMBER ? '' : text.slice(start, end);
    if (text[start] !== '"' && (!isSafe(token) || BIG.test(before))) {
      pieces.push(text.slice(copied, start), `"${token}"`);
      copied = end;
    }
    before = token;
    start = next(TOKEN, text, end);
  }
  return pieces.join('') + text.slice(copied);
}

/** The next place of a character, or the length. */
function next(character: RegExp, text: string, from: number): number {
  character.lastIndex = from;
  return character.exec(text)?.index ?? text.length;
}

/** Behind the quote that no backslash escapes. */
function endOfText(text: string, from: number): number {
  for (let quote = text.indexOf('"', from); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    let backslashes = 0;
    while (text[quote - 1 - backslashes] === '\\') backslashes++;
    if (backslashes % 2 === 0) return quote + 1;
  }
  return text.length;
}

/** Whether it is the same number in JavaScript. What is no number is for JSON.parse() to refuse. */
function isSafe(number: string): boolean {
  if (number === '') throw new UnreadableValueError('A number is too long');
  if (!NUMBER.test(number)) return true;
  const value = Number(number);
  return Number.isFinite(value) && (number.length < 16 || significant(number) === significant(String(value)));
}

function significant(number: string): string {
  return number
    .replace(/[eE].*$/, '')
    .replace(/[-.]/g, '')
    .replace(/^0+|0+$/g, '');
}

class Unwrapping {
  readonly #limits: ReadingLimits;
  #depth = 0;

  constructor(limits: ReadingLimits) {
    this.#limits = limits;
  }

  value(stored: PlainValue): PlainValue {
    if (typeof stored !== 'object' || stored === null) return stored;
    if (++this.#depth > this.#limits.depth) throw new UnreadableValueError('The JSON is too deep');
    const plain = Array.isArray(stored) ? this.#list(stored) : this.#object(stored);
    this.#depth--;
    return plain;
  }

  #list(stored: PlainValue[]): PlainValue {
    const [name, content] = stored;
    if (stored.length === 2 && isClass(name)) return this.value(content!);
    return stored.map((each) => this.value(each));
  }

  #object(stored: Readonly<Record<string, PlainValue>>): PlainValue {
    const members = Object.entries(stored).filter(([name, value]) => name !== '@class' || !isClass(value));
    return Object.fromEntries(members.map(([name, value]) => [name, this.value(value)]));
  }
}

function isClass(name: PlainValue | undefined): boolean {
  return typeof name === 'string' && name.length <= LONGEST_NAME && CLASS.test(name);
}

/** Of a text that can be read. */
export type JsonForm = 'json' | 'plain-json' | 'typed-json' | 'security-json';

// In a text of JSON, a backslash stands before each quote.
const SECURITY_CLASS = '"@class":"org.springframework.security.';

/** Which serializer has written it. `json`: it is no object and no list, so each of them may have. */
export function jsonFormOf(text: string): JsonForm {
  const stored = JSON.parse(text) as PlainValue;
  if (typeof stored !== 'object' || stored === null) return 'json';
  if (text.includes(SECURITY_CLASS)) return 'security-json';
  const name = Array.isArray(stored) ? stored.length === 2 && stored[0] : stored['@class'];
  return name !== false && isClass(name) ? 'typed-json' : 'plain-json';
}
