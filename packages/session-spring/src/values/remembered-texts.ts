import { withoutProto } from '@nest-session/core/internal';
import { readStoredJson } from './stored-json.js';
import type { PlainValue } from './plain-value.js';
import { READING_LIMITS } from './reading-limits.js';

/** The text that an object was read from, and what the object was then, as JSON. */
interface RememberedText {
  readonly text: string;
  readonly plain: string;
}

// Java keeps such a key of a client's JSON. Also where an escape sequence stands for a letter.
const PERHAPS_PROTO = /__proto__|\\u00/;

const TEXTS = new WeakMap<object, RememberedText>();

/**
 * The value of a text of JSON that Spring keeps. An object remembers its text, which says which classes of Java it is
 * of.
 */
export function valueOfText(text: string): PlainValue {
  const value = readStoredJson(text, READING_LIMITS);
  if (PERHAPS_PROTO.test(text)) withoutProto(value);
  if (typeof value === 'object' && value !== null) TEXTS.set(value, { text, plain: JSON.stringify(value) });
  return value;
}

/** The text that a value was read from; undefined for any other value. */
export function textRememberedOf(value: unknown): RememberedText | undefined {
  return typeof value === 'object' && value !== null ? TEXTS.get(value) : undefined;
}
