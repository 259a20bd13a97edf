import { SessionIndexError } from '../errors/session.errors.js';
import { isTextOfNothing, isWellFormed, PRINCIPAL_ATTRIBUTE, textOfNothing } from './attribute-names.js';
import type { AttributeSerializer } from './attribute.serializer.js';
import { readText } from './json-attribute.serializer.js';
import type { AttributeChanges, IndexChanges } from './session-change.js';
import { PRINCIPAL_NAME_INDEX_NAME, type ReadonlySession } from './session.js';
import { assertString } from '../option-reading/assert-argument.js';
import { hashOf } from './session-token.js';

/** What a function of the option `indexes` may read of a session: one attribute, or the name of the principal. */
type IndexedSession = Pick<ReadonlySession, 'principalName' | 'getAttribute' | 'getAttributeOrDefault'>;

/** Gives the value under which an index lists a session; undefined, null or an empty string: it is not listed. */
export type SessionIndex = (session: IndexedSession) => string | undefined | null;

interface Definition {
  readonly name: string;
  readonly attribute: string;
  readonly valueOf: SessionIndex;
}

export const NO_INDEXES: IndexChanges = new Map();

/**
 * Each index is a function of one attribute. So a save that writes the attribute knows the value of the index, whatever
 * other requests write at the same time, and the two always agree.
 */
export class SessionIndexes {
  /** The names of those of the application. */
  readonly names: readonly string[];
  readonly #byAttribute = new Map<string, Definition[]>();

  /** The index of principals and these. @throws TypeError for an invalid one, such as one that reads two attributes */
  constructor(indexes: Readonly<Record<string, SessionIndex>> = {}) {
    this.names = Object.keys(indexes);
    const principals: SessionIndex = ({ principalName }) => principalName;
    this.add({ [PRINCIPAL_NAME_INDEX_NAME]: principals, ...indexes });
  }

  /** Before the first save. @throws TypeError for an invalid one, such as one that reads two attributes */
  add(indexes: Readonly<Record<string, SessionIndex>>): void {
    for (const [name, valueOf] of Object.entries(indexes)) {
      const { attribute, problem } = probe(name, valueOf);
      if (attribute === undefined) throw new TypeError(`Session index ${JSON.stringify(name)} ${problem}`);
      const others = this.#byAttribute.get(attribute) ?? [];
      this.#byAttribute.set(attribute, [...others, { name, attribute, valueOf }]);
    }
  }

  /** Also with the value that an index seems to have: another request may have changed it. @throws SessionIndexError */
  changesOf(changes: AttributeChanges, serializer: AttributeSerializer): IndexChanges {
    let indexes: Map<string, string | null> | undefined;
    for (const [attribute, text] of changes) {
      for (const index of this.#byAttribute.get(attribute) ?? []) {
        // Decoded for each, because it may change the value.
        const value = termOf(index, () => (text === null ? undefined : readText(serializer, text)));
        (indexes ??= new Map()).set(indexNameTerm(index.name), value);
      }
    }
    return indexes ?? NO_INDEXES;
  }

  /** What takes a session out of the indexes of all attributes but those that it keeps. */
  leave(keeps: (attribute: string) => boolean = () => false): IndexChanges {
    const lost = [...this.#byAttribute.values()].flat().filter(({ attribute }) => !keeps(attribute));
    return new Map(lost.map(({ name }) => [indexNameTerm(name), null]));
  }
}

export function joined(left: IndexChanges, changed: IndexChanges): IndexChanges {
  return left.size > 0 ? new Map([...left, ...changed]) : changed;
}

export function indexProblem(name: string, valueOf: SessionIndex): string | undefined {
  if (name === PRINCIPAL_NAME_INDEX_NAME) return 'has the name of the index of principals, which is always there';
  return probe(name, valueOf).problem;
}

/** Reads attributes by a function. The methods are properties: an index may take them out of the object. */
class IndexedAttributes implements IndexedSession {
  constructor(private readonly read: (name: string) => unknown) {}

  get principalName(): string | undefined {
    const name = this.read(PRINCIPAL_ATTRIBUTE);
    return typeof name === 'string' ? name : undefined;
  }

  readonly getAttribute = <T>(name: string): T | undefined => this.read(name) as T | undefined;

  readonly getAttributeOrDefault = <T>(name: string, defaultValue: T): T => this.getAttribute<T>(name) ?? defaultValue;
}

function probe(name: string, valueOf: SessionIndex): { readonly attribute?: string; readonly problem?: string } {
  const problem = indexNameProblem(name);
  if (problem !== undefined) return { problem };
  const read = new Set<string>();
  try {
    const value: unknown = valueOf(new IndexedAttributes((attribute) => void read.add(attribute)));
    if (value !== undefined && value !== null && value !== '') return { problem: WITHOUT_ATTRIBUTES };
  } catch {
    return { problem: WITHOUT_ATTRIBUTES };
  }
  const [attribute, ...others] = read;
  return attribute !== undefined && others.length === 0 ? { attribute } : { problem: ONE_ATTRIBUTE };
}

function termOf({ name, attribute, valueOf }: Definition, decode: () => unknown): string | null {
  let value: unknown;
  try {
    const current = decode() ?? undefined;
    if (current === undefined) return null;
    value = valueOf(new IndexedAttributes((read) => (read === attribute ? current : refuse(name, attribute))));
  } catch (cause) {
    if (cause instanceof SessionIndexError) throw cause;
    throw new SessionIndexError(name, 'has a function that throws', { cause });
  }
  if (value === undefined || value === null || value === '') return null;
  if (typeof value !== 'string')
    throw new SessionIndexError(name, `has a function that returns a value of type ${typeof value}`);
  if (!isWellFormed(value)) throw new SessionIndexError(name, 'has a value that is not well-formed Unicode');
  if (isTextOfNothing(value)) throw new SessionIndexError(name, `has a function that returns ${textOfNothing(value)}`);
  return indexTerm(value);
}

function refuse(name: string, attribute: string): never {
  const problem = `has a function that reads more than the attribute ${JSON.stringify(attribute)}: ${TOGETHER}`;
  throw new SessionIndexError(name, problem);
}

const TOGETHER = 'keep in one attribute all that it depends on';
const ONE_ATTRIBUTE = `must read one attribute, the same one for every session: ${TOGETHER}`;
const WITHOUT_ATTRIBUTES = 'must return undefined for a session without attributes';

const LONGEST = 256;

const HASHED = 'sha256:';

/** Of a long value its hash, so that clients cannot fill the store; so of one that looks like a hash of another. */
export function indexTerm(value: string): string {
  return value.startsWith(HASHED) || Buffer.byteLength(value) > LONGEST ? HASHED + hashOf(value) : value;
}

/** What stores have as the name of an index: without `:`, so that a key has one name and one value. */
function indexNameTerm(name: string): string {
  return name.replaceAll('%', '%25').replaceAll(':', '%3A');
}

export interface IndexEntry {
  readonly indexName: string;
  readonly value: string;
}

/** Undefined for text that is not well-formed, under which nothing is listed. @throws TypeError for what is no text */
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

function indexNameProblem(name: string): string | undefined {
  if (name === '') return 'must have a name';
  if (!isWellFormed(name)) return 'must have a name of well-formed Unicode';
  return Buffer.byteLength(name) > LONGEST ? `must have a name of at most ${LONGEST} bytes` : undefined;
}
