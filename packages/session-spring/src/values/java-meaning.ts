import { JAVA_COLLECTIONS, listOf } from './java-collections.js';
import type { JavaReading } from './java-reading.js';
import { JAVA_SCALARS, numberOf } from './java-scalars.js';
import { JAVA_TIME } from './java-time.js';
import { EXTERNALIZABLE, type JavaArray, type JavaObject, type JavaValue } from './java-tree.js';
import type { PlainValue } from './plain-value.js';
import type { ReadingLimits } from './reading-limits.js';
import { UnreadableValueError } from './unreadable-value.error.js';

const KNOWN: ReadonlyMap<string, JavaReading> = new Map([...JAVA_SCALARS, ...JAVA_TIME, ...JAVA_COLLECTIONS]);
/** What the fields of such a class mean, only the class knows. */
const OF_JAVA = /^(?:java|javax|jdk|sun|com\.sun)\./;

/**
 * Says what a tree of a Java stream means, as data of JSON: numbers, texts, lists, maps and times as Jackson writes
 * them, objects of an application by their fields. Undefined for what is unknown, and for an object inside of itself.
 */
export class JavaMeaning {
  readonly #limits: ReadingLimits;
  readonly #open = new Set<JavaObject | JavaArray>();
  #steps = 0;
  #characters = 0;

  constructor(limits: ReadingLimits) {
    this.#limits = limits;
  }

  /** @throws UnreadableValueError beyond the limits: what is referred to often is as large as often */
  readonly read = (value: JavaValue | undefined): PlainValue | undefined => {
    if (++this.#steps > this.#limits.steps) throw new UnreadableValueError('The value has too many parts');
    switch (typeof value) {
      case 'undefined':
      case 'boolean':
        return value;
      case 'bigint':
      case 'number':
        return numberOf(value);
      case 'string':
        return this.#counted(value);
      default:
        return value && this.#structure(value);
    }
  };

  #structure(value: Exclude<JavaValue, null | boolean | number | bigint | string>): PlainValue | undefined {
    switch (value.kind) {
      case 'enum':
      case 'class':
        return this.#counted(value.name);
      case 'array':
        return this.#inside(value, () => this.#array(value));
      case 'object':
        return this.#inside(value, () => this.#object(value));
    }
  }

  #inside(value: JavaObject | JavaArray, work: () => PlainValue | undefined): PlainValue | undefined {
    if (this.#open.has(value)) return undefined;
    // References make a value deeper than its stream.
    if (this.#open.size === this.#limits.depth) throw new UnreadableValueError('The value is too deep');
    this.#open.add(value);
    const meaning = work();
    this.#open.delete(value);
    return meaning;
  }

  #array({ type, items }: JavaArray): PlainValue {
    if (Buffer.isBuffer(items)) return this.#counted(items.toString('base64'));
    return type === 'C'
      ? this.#counted(items.filter((item) => typeof item === 'string').join(''))
      : listOf(items, this.read);
  }

  #object({ type, parts }: JavaObject): PlainValue | undefined {
    // A class of the application may extend a known one.
    const known = parts.findLast((part) => KNOWN.has(part.type.name));
    if (known) return this.#text(KNOWN.get(known.type.name)!(known, this.read, parts));
    if (OF_JAVA.test(type.name) || (type.flags & EXTERNALIZABLE) !== 0) return undefined;
    const own = parts.filter((part) => !OF_JAVA.test(part.type.name));
    const fields = own.flatMap((part) => [...part.fields].map(([name, value]) => [name, this.read(value)] as const));
    return Object.fromEntries(fields.filter((field): field is [string, PlainValue] => field[1] !== undefined));
  }

  #text(meaning: PlainValue | undefined): PlainValue | undefined {
    return typeof meaning === 'string' ? this.#counted(meaning) : meaning;
  }

  /** A short text in the stream may be meant many times. */
  #counted(text: string): string {
    this.#characters += text.length;
    if (this.#characters > 2 * this.#limits.bytes) throw new UnreadableValueError('The value has too much text');
    return text;
  }
}
