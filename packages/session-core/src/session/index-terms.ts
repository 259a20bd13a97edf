import { assertString } from '../option-reading/assert-argument.js';
import { PRINCIPAL_NAME_INDEX_NAME } from './session.js';
import { hashOf } from './session-token.js';

/** Bytes of UTF-8 up to which stores list a session under a value as it is. */
const LONGEST = 256;

const HASHED = 'sha256:';

/** Whether a text has an encoding: half of a surrogate pair has none, so that two texts could become one key. */
export function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

/**
 * What stores have as the value of an index: the value itself; of a long one, its hash, so that clients cannot fill the
 * store with the names that they choose. A value that looks like a hash is hashed, so that it never is that of another.
 */
export function indexTerm(value: string): string {
  return value.startsWith(HASHED) || Buffer.byteLength(value) > LONGEST ? HASHED + hashOf(value) : value;
}

/** What stores have as the name of an index: without `:`, so that a key has one name and one value. */
export function indexNameTerm(name: string): string {
  return name.replaceAll('%', '%25').replaceAll(':', '%3A');
}

/** An entry of an index as stores know it. */
export interface IndexEntry {
  readonly indexName: string;
  readonly value: string;
}

/**
 * An entry as stores know it; undefined for text that is not well-formed, under which nothing is listed.
 * @throws TypeError for what is no text
 */
export function indexEntry(name: string, value: string): IndexEntry | undefined {
  assertString('The name of an index', name);
  assertString(
    name === PRINCIPAL_NAME_INDEX_NAME ? 'The name of a principal' : `The value of index ${JSON.stringify(name)}`,
    value,
  );
  // The store would take it for the text with another character, which may be somebody else's.
  if (!isWellFormed(name) || !isWellFormed(value)) return undefined;
  return { indexName: indexNameTerm(name), value: indexTerm(value) };
}

/** What is wrong with the name of an index, as the end of a sentence; undefined when it is valid. */
export function indexNameProblem(name: string): string | undefined {
  if (name === '') return 'must have a name';
  if (!isWellFormed(name)) return 'must have a name of well-formed Unicode';
  return Buffer.byteLength(name) > LONGEST ? `must have a name of at most ${LONGEST} bytes` : undefined;
}
