import { markSafe, withoutProto } from '@nest-session/core/internal';
import { type AttributeSerializer, JsonAttributeSerializer, SerializationProblem } from '@nest-session/core';
import { type JsonForm, jsonFormOf, readStoredJson, type StoredForm } from './stored-value.js';
import { type JsonValue, READING_LIMITS } from './json-values.js';
import { NO_OWN_CLASSES, type OwnClasses } from './own-classes.js';

// Java keeps such a key of a client's JSON. Also where an escape sequence stands for a letter.
const PERHAPS_PROTO = /__proto__|\\u00/;

interface StoredText {
  readonly text: string;
  /** What the object was then, as JSON. */
  readonly plain: string;
  /** Classes of the application, for a context of Spring Security. */
  readonly own: OwnClasses;
}

const TEXTS = new WeakMap<object, StoredText>();

export function storedTextOf(value: unknown): StoredText | undefined {
  return TEXTS.get(value as object);
}

/** An object remembers its text, which says which classes of Java it is of. */
export function valueOfText(text: string, own: OwnClasses = NO_OWN_CLASSES): JsonValue {
  const value = readStoredJson(text, READING_LIMITS);
  if (PERHAPS_PROTO.test(text)) withoutProto(value);
  if (typeof value === 'object' && value !== null) TEXTS.set(value, { text, plain: JSON.stringify(value), own });
  return value;
}

/**
 * Which JSON an application of Spring keeps:
 * - `plain`: `GenericJacksonJsonRedisSerializer.builder().build()`;
 * - `typed`: `RedisSerializer.json()`, which writes the class of each object and list;
 * - `security`: the same by the Jackson modules of Spring Security, which are needed to share who is signed in to it.
 */
export type SpringJson = 'plain' | 'typed' | 'security';

const FORMS: readonly SpringJson[] = ['plain', 'typed', 'security'];

/** We read no deeper ones, and a list with its class is two lists. */
const DEEPEST = READING_LIMITS.depth / 2;
/** Characters: Jackson reads no longer key (`StreamReadConstraints`). */
const LONGEST_KEY = 50_000;
const HALF_OF_A_PAIR = /(?<!\\)(?:\\\\)*\\ud[89a-f]/i;

const CLASS = '@class';
const NAMES_A_CLASS = 'holds a key `@class`, by which Spring knows the class of an object: rename the key';
const UNKNOWN =
  'is an object or a list, and nothing in Redis shows yet which JSON the Spring application keeps: say so with the option ' +
  "`serializer: new SpringJsonSerializer('plain')` of SpringSessionModule, or 'typed', or 'security'";

/**
 * Turns attributes into the JSON that a Spring application keeps, and back: the serializer of `mode: 'shared'`. An
 * object that Java has written reads as its fields, and is written as it was. It refuses what Java could not read.
 */
export class SpringJsonSerializer extends JsonAttributeSerializer {
  static {
    markSafe(this.prototype.deserialize);
  }

  #form: SpringJson | undefined;
  readonly #isStated: boolean;
  /** @internal What makes JSON of a value first, where that is not this class. */
  plain: (() => AttributeSerializer) | undefined;
  /** @internal Those of the module. */
  own: OwnClasses = NO_OWN_CLASSES;

  /**
   * Writes the JSON that the Spring application keeps. `form`: which one that is; by default it is seen in Redis, and
   * objects and lists are refused until then.
   * @throws TypeError for another form
   */
  constructor(form?: SpringJson) {
    super();
    if (form !== undefined && !FORMS.includes(form)) {
      throw new TypeError("SpringJsonSerializer takes 'plain', 'typed' or 'security'");
    }
    this.#form = form;
    this.#isStated = form !== undefined;
  }

  /** @internal What is known of the JSON that the Spring application keeps; undefined: nothing. */
  get form(): SpringJson | undefined {
    return this.#form;
  }

  /** @internal Sees a text that Spring has stored. */
  see(text: string): void {
    const isObject = text.startsWith('{') || text.startsWith('[');
    if (isObject && !this.#isStated && this.#form !== 'security') this.seeForm(formIn(text));
  }

  /** @internal Sees which form a text has that Spring has stored. What was stated counts more. */
  seeForm(seen: StoredForm | undefined): void {
    if (this.#isStated || this.#form === 'security') return;
    if (seen === 'security-json') this.#form = 'security';
    else if (seen === 'typed-json') this.#form = 'typed';
    // With classes, an immutable list has none.
    else if (seen === 'plain-json') this.#form ??= 'plain';
  }

  /** The text that Spring reads. @throws SerializationProblem for a value that Java could not read as the same */
  override serialize(value: unknown): string {
    const read = TEXTS.get(value as object);
    if (!read) return this.#written(value);
    if (JSON.stringify(value) === read.plain) return this.#unchanged(read.text);
    if (this.#written(JSON.parse(read.plain)) !== read.text) {
      throw new SerializationProblem(
        'was written by Java, with classes that a change of its fields would lose: let Spring change it, or set a copy',
      );
    }
    return this.#written(value);
  }

  /** The value of a text, without the classes of Java. */
  override deserialize(text: string): unknown {
    this.see(text);
    return valueOfText(text, this.own);
  }

  /** Whether an object still is what its text says. */
  override hasText(value: unknown, text: string): boolean {
    const read = TEXTS.get(value as object);
    return read ? read.text === text && JSON.stringify(value) === read.plain : super.hasText(value, text);
  }

  /** Only what Spring Security itself has written, or what is written for it, has its classes. */
  #unchanged(text: string): string {
    if (formIn(text) === 'security-json' && this.#form !== 'security') {
      throw new SerializationProblem(
        'is for Spring Security, which must keep its sessions with SecurityJacksonModules: say that it does with the option ' +
          "`serializer: new SpringJsonSerializer('security')` of SpringSessionModule",
      );
    }
    return text;
  }

  #written(value: unknown): string {
    const plain = this.plain?.().serialize(value) ?? super.serialize(value);
    if (HALF_OF_A_PAIR.test(plain)) {
      throw new SerializationProblem('holds half of a surrogate pair, which Java cannot store again: remove it');
    }
    const copy = JSON.parse(plain) as JsonValue;
    if (typeof copy !== 'object') return this.#readable(plain, plain);
    if (!this.#form) throw new SerializationProblem(UNKNOWN);
    const text = this.#form === 'plain' ? plain : JSON.stringify(withClasses(copy, 1));
    if (this.#form === 'plain') withClasses(copy, 1);
    return this.#readable(text, plain);
  }

  /** A list that looks like one with its class, or a number that Java reads as another one. */
  #readable(text: string, plain: string): string {
    if (JSON.stringify(readStoredJson(text, READING_LIMITS)) === plain) return text;
    throw new SerializationProblem(
      'holds a value that would be another one in Java, such as a number without an exact integer, or a list or an object that names a class of Java: ' +
        'store it as text',
    );
  }
}

function formIn(text: string): JsonForm | undefined {
  try {
    return jsonFormOf(text);
  } catch {
    return undefined;
  }
}

/** With the classes that every serializer of Spring with classes reads, at every depth. */
function withClasses(value: JsonValue, depth: number): JsonValue {
  if (typeof value !== 'object' || value === null) return value;
  if (depth > DEEPEST) throw new SerializationProblem(`is nested deeper than ${DEEPEST} levels: store a flatter value`);
  if (Array.isArray(value)) return ['java.util.ArrayList', value.map((each) => withClasses(each, depth + 1))];
  if (Object.hasOwn(value, CLASS)) throw new SerializationProblem(NAMES_A_CLASS);
  if (Object.keys(value).some((key) => key.length > LONGEST_KEY))
    throw new SerializationProblem(`holds a key of more than ${LONGEST_KEY} characters: store a shorter one`);
  const members = Object.entries(value).map(([name, each]) => [name, withClasses(each, depth + 1)] as const);
  return { [CLASS]: 'java.util.LinkedHashMap', ...Object.fromEntries(members) };
}
