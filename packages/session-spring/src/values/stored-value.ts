import { randomUUID } from 'node:crypto';
import { type JsonValue, membersOf, READING_LIMITS, type ReadingLimits, UnreadableValueError } from './json-values.js';
import { JavaMeaning } from './java-values.js';
import { JavaStreamReader } from './java-stream.js';

/** The name of a class, with the types in it, of an array of objects, or of an array of numbers. */
const CLASS = /^(?:\[*L?(?:[a-z_]\w*\.)+[A-Z$][\w$/]*(?:<[\w.$,<>]*>)?;?|\[+[BCDFIJSZ])$/;
const LONGEST_NAME = 500;
/** The beginning of a text, or of a number outside of texts. */
const TOKEN = /["\d-]/g;
const BEHIND_NUMBER = /[^\d.eE+-]/g;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
// Jackson reads no longer ones.
const LONGEST_NUMBER = 1000;
const OF_JAVA = /^java\./;
const BIG = /^"java\.math\.Big(?:Decimal|Integer)"$/;

/**
 * Reads the JSON of Spring's serializers: the plain one, and those that write the class of each object and list, as
 * `{"@class":"java.util.HashMap"}` and `["java.util.ArrayList",[]]`. The classes are left out. A number that JavaScript
 * does not have is a text.
 * @throws SyntaxError when it is no JSON, and UnreadableValueError beyond the limits
 */
export function readStoredJson(text: string, limits: ReadingLimits): JsonValue {
  return unwrapped(JSON.parse(withoutUnsafeNumbers(text)) as JsonValue, limits.depth);
}

/** The member that has the class of an object where classes are kept. No data can have it. */
const KEPT_CLASS = `@class ${randomUUID()}`;
/** And the one that has a text or a number of another class than one of Java. */
const KEPT_VALUE = `${KEPT_CLASS} value`;
/** Jackson writes the class of an object first. A key of the same name, which a client may have chosen, comes later. */
const FIRST_CLASS = /\{\s*"@class"\s*:/g;

function readClassedJson(text: string, limits: ReadingLimits): JsonValue {
  const marked = text.replaceAll(FIRST_CLASS, `{${JSON.stringify(KEPT_CLASS)}:`);
  return unwrapped(JSON.parse(withoutUnsafeNumbers(marked)) as JsonValue, limits.depth, true);
}

/** The class of an object, as Java names it, in a value that `readClassedValue()` has read. */
export function classOf(value: JsonValue | undefined): string | undefined {
  const name = membersOf(value)?.[KEPT_CLASS];
  return typeof name === 'string' ? name : undefined;
}

export function withoutClasses(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutClasses);
  if (Object.hasOwn(value, KEPT_VALUE)) return value[KEPT_VALUE]!;
  const members = Object.entries(value).filter(([name]) => name !== KEPT_CLASS);
  return Object.fromEntries(members.map(([name, each]) => [name, withoutClasses(each)]));
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

function unwrapped(stored: JsonValue, deepest: number, keepsClasses = false, depth = 1): JsonValue {
  if (typeof stored !== 'object' || stored === null) return stored;
  if (depth > deepest) throw new UnreadableValueError('The JSON is too deep');
  const inner = (value: JsonValue) => unwrapped(value, deepest, keepsClasses, depth + 1);
  if (Array.isArray(stored)) {
    if (stored.length !== 2 || !isClass(stored[0])) return stored.map(inner);
    const [name, value] = [stored[0], inner(stored[1]!)];
    const isKept = keepsClasses && typeof value !== 'object' && !OF_JAVA.test(name);
    return isKept ? { [KEPT_CLASS]: name, [KEPT_VALUE]: value } : value;
  }
  const members = Object.entries(stored).filter(([name, value]) => name !== '@class' || !isClass(value));
  return Object.fromEntries(members.map(([name, value]) => [name, inner(value)]));
}

function isClass(name: JsonValue | undefined): name is string {
  return typeof name === 'string' && name.length <= LONGEST_NAME && CLASS.test(name);
}

export type JsonForm = 'json' | 'plain-json' | 'typed-json' | 'security-json';

// In a text of JSON, a backslash stands before each quote.
const SECURITY_CLASS = '"@class":"org.springframework.security.';

/** Which serializer has written it. `json`: it is no object and no list, so each of them may have. */
export function jsonFormOf(text: string): JsonForm {
  const stored = JSON.parse(text) as JsonValue;
  if (typeof stored !== 'object' || stored === null) return 'json';
  if (text.includes(SECURITY_CLASS)) return 'security-json';
  const name = Array.isArray(stored) ? stored.length === 2 && stored[0] : stored['@class'];
  return name !== false && isClass(name) ? 'typed-json' : 'plain-json';
}

const JAVA_STREAM = 0xaced;
// As Java does: what is no UTF-8 is not read with question marks.
const UTF_8 = new TextDecoder('utf-8', { fatal: true });

/** Which serializer has written a value: Java's own serialization, or one of JSON. Undefined if it cannot be read. */
export type StoredForm = 'java' | JsonForm;

export function formOf(stored: Buffer): StoredForm | undefined {
  if (isJavaStream(stored)) return 'java';
  return readStoredValue(stored) === undefined ? undefined : jsonFormOf(UTF_8.decode(stored));
}

function isJavaStream(stored: Buffer): boolean {
  return stored.length > 1 && stored.readUInt16BE() === JAVA_STREAM;
}

/** As data of JSON, whichever serializer has stored it. Undefined if it cannot be read. */
export function readStoredValue(stored: Buffer, limits: ReadingLimits = READING_LIMITS): JsonValue | undefined {
  return readAny(stored, readStoredJson, undefined, limits);
}

/** The same where each object keeps its class, for `classOf()`. */
export function readClassedValue(stored: Buffer): JsonValue | undefined {
  return readAny(stored, readClassedJson, KEPT_CLASS, READING_LIMITS);
}

function readAny(
  stored: Buffer,
  readJson: (text: string, limits: ReadingLimits) => JsonValue,
  keptClass: string | undefined,
  limits: ReadingLimits,
): JsonValue | undefined {
  if (stored.length > limits.bytes) return undefined;
  try {
    if (!isJavaStream(stored)) return readJson(UTF_8.decode(stored), limits);
    return new JavaMeaning(limits, keptClass).read(new JavaStreamReader(stored, limits).read());
  } catch (error) {
    if (error instanceof UnreadableValueError || error instanceof SyntaxError) return undefined;
    // Of the decoder.
    if ((error as NodeJS.ErrnoException).code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return undefined;
    throw error;
  }
}
