import { JavaMeaning } from './java-meaning.js';
import { JavaStreamReader } from './java-stream.reader.js';
import type { PlainValue } from './plain-value.js';
import { READING_LIMITS, type ReadingLimits } from './reading-limits.js';
import { type JsonForm, jsonFormOf, readStoredJson } from './stored-json.js';
import { UnreadableValueError } from './unreadable-value.error.js';

const JAVA_STREAM = Buffer.of(0xac, 0xed);
// As Java does: what is no UTF-8 is not read with question marks.
const UTF_8 = new TextDecoder('utf-8', { fatal: true });

/** What has written a value. */
export type StoredForm = 'java' | JsonForm;

/** Which serializer has written a value. Undefined if it cannot be read. */
export function formOf(stored: Buffer): StoredForm | undefined {
  if (isJavaStream(stored)) return 'java';
  return readStoredValue(stored) === undefined ? undefined : jsonFormOf(UTF_8.decode(stored));
}

/** Whether it is what Java's own serialization has written. */
function isJavaStream(stored: Buffer): boolean {
  return stored.subarray(0, JAVA_STREAM.length).equals(JAVA_STREAM);
}

/**
 * The value that a serializer of Spring has stored, whichever it was, as data of JSON. Undefined if it cannot be read.
 */
export function readStoredValue(stored: Buffer, limits: ReadingLimits = READING_LIMITS): PlainValue | undefined {
  if (stored.length > limits.bytes) return undefined;
  try {
    if (!isJavaStream(stored)) return readStoredJson(UTF_8.decode(stored), limits);
    return new JavaMeaning(limits).read(new JavaStreamReader(stored, limits).read());
  } catch (error) {
    const isForeign = error instanceof UnreadableValueError || error instanceof SyntaxError || isOfDecoder(error);
    if (isForeign) return undefined;
    throw error;
  }
}

function isOfDecoder(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_ENCODING_INVALID_ENCODED_DATA';
}
