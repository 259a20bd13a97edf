import { AttributeSerializer, hasText, SerializationProblem } from './attribute.serializer.js';

const LONGEST_KEY = 40;
const LONGEST_PATH = 200;

/** The key that `Object.assign()` and the like do not copy: they give the copy another prototype. */
const PROTO = '__proto__';

type Deserialize = AttributeSerializer['deserialize'];

const leavesOutProto = new WeakSet<Deserialize>();

/** Says that this method itself leaves out keys `__proto__`. One that overrides it does not have to. */
export function markSafe(deserialize: Deserialize): void {
  leavesOutProto.add(deserialize);
}

/**
 * Serializes attributes as JSON; the default. Members that are undefined are left out, as `JSON.stringify()` does.
 * Refuses what JSON would silently change, such as `Date`, `Map`, `BigInt`, `NaN`, `undefined` in an array, and
 * instances of classes: to store the data of a DTO, copy it, as in `{ ...dto }`. Refuses keys `__proto__`, and leaves
 * them out of what others have stored.
 */
export class JsonAttributeSerializer extends AttributeSerializer {
  static {
    markSafe(this.prototype.deserialize);
  }

  serialize(value: unknown): string {
    const found = jsonProblem(value);
    if (!found) return JSON.stringify(value);
    const { what, instead, isForbidden } = found;
    const path = shortened(found.path);
    if (isForbidden) throw new SerializationProblem(forbiddenKey(path));
    throw new SerializationProblem(
      `${path === '' ? 'holds a value' : `holds a value at ${path}`} that ${what}, which JSON cannot restore: ` +
        `${instead}, or ${OTHER_SERIALIZERS}`,
    );
  }

  deserialize(text: string): unknown {
    return parseJson(text);
  }

  /** Without a search for what JSON would change: nothing is written of a value whose text is the same. */
  override hasText(value: unknown, text: string): boolean {
    try {
      return JSON.stringify(value) === text;
    } catch {
      return false;
    }
  }
}

const OTHER_SERIALIZERS =
  'set the `serializer` option of the store: ExpressSessionSerializer of @nest-session/express-session keeps what ' +
  'JSON.stringify() writes, DevalueAttributeSerializer restores it';

interface JsonProblem {
  readonly path: string;
  readonly what: string;
  readonly instead: string;
  /** Whether no serializer may store it: the key at `path` is `__proto__`. */
  readonly isForbidden?: boolean;
}

// Also where an escape sequence stands for a letter, which JSON.stringify() does not write.
const PERHAPS_PROTO = /"__proto__"\s*:|\\u00[4-7]/i;

/** The value of a JSON text, without keys `__proto__`. */
export function parseJson(text: string): unknown {
  if (!PERHAPS_PROTO.test(text)) return JSON.parse(text);
  return JSON.parse(text, (key, value: unknown) => (key === PROTO ? undefined : value));
}

export function shortened(path: string): string {
  return path.length > LONGEST_PATH ? `${path.slice(0, LONGEST_PATH)}…` : path;
}

export function forbiddenKey(path: string): string {
  return (
    `holds a key \`__proto__\`${path === '' ? '' : ` at ${path}`}, which would become the prototype of a copy: remove ` +
    'or rename the key'
  );
}

export function jsonProblem(value: unknown): JsonProblem | undefined {
  try {
    return findProblem(value);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  // It is nested deeper than the stack, perhaps because it refers back to itself.
  try {
    return findProblem(value, new Set());
  } catch (error) {
    if (error instanceof RangeError) return problem('is nested too deeply', 'store a flatter value');
    throw error;
  }
}

/** The first thing that JSON would change. `ancestors`: looks for references back, which costs more than all else. */
function findProblem(value: unknown, ancestors?: Set<object>): JsonProblem | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return undefined;
    case 'number':
      return Number.isFinite(value) ? undefined : problem('is NaN or infinite', 'store null');
    case 'object':
      if (value === null) return undefined;
      break;
    case 'undefined':
      return problem('is undefined', 'store null');
    case 'bigint':
      return problem('is a bigint', 'store a string');
    default:
      return problem(`is a ${typeof value}`, 'store plain data');
  }
  if (ancestors?.has(value)) return problem('refers back to itself', 'store plain data');
  ancestors?.add(value);
  const found = Array.isArray(value) ? problemOfElement(value, ancestors) : problemOfMember(value, ancestors);
  ancestors?.delete(value);
  return found;
}

function problemOfElement(array: readonly unknown[], ancestors: Set<object> | undefined): JsonProblem | undefined {
  // The prototype of an array is an array. An instance of a class that extends Array has another prototype.
  if (!Array.isArray(Object.getPrototypeOf(array))) return problemOfInstance(array);
  // By index, because forEach() skips holes, which JSON turns into null.
  for (let index = 0; index < array.length; index++) {
    const found = findProblem(array[index], ancestors);
    if (found) return { ...found, path: `[${index}]${found.path}` };
  }
  return undefined;
}

function problemOfMember(object: object, ancestors: Set<object> | undefined): JsonProblem | undefined {
  if (!isPlain(object)) return problemOfInstance(object);
  if ('toJSON' in object && typeof object.toJSON === 'function') {
    return problem('has a toJSON()', 'store plain data');
  }
  for (const key of Object.keys(object)) {
    if (key === PROTO) return { path: `.${PROTO}`, what: '', instead: '', isForbidden: true };
    const member = (object as Record<string, unknown>)[key];
    if (member === undefined) continue;
    const found = findProblem(member, ancestors);
    if (found) return { ...found, path: step(key) + found.path };
  }
  return undefined;
}

/** A step of a path. Clients may have chosen the key, and the path is for logs: it is quoted there, and not long. */
function step(key: string): string {
  if (key.length > LONGEST_KEY) return step(`${key.slice(0, LONGEST_KEY - 1)}…`);
  return /^[\w$]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

function problemOfInstance(value: object): JsonProblem {
  const name = value.constructor?.name ?? 'special object';
  return problem(`is a ${name}`, INSTEAD_OF[name] ?? 'store plain data, such as its id or the members that you need');
}

const INSTEAD_OF: Readonly<Record<string, string>> = {
  Date: 'store a number, its `getTime()`',
  Promise: 'await it, and store what it resolves to',
  URL: 'store its text, `String(url)`',
  Map: 'store an array, `[...map]`',
  Set: 'store an array, `[...set]`',
};

function problem(what: string, instead: string): JsonProblem {
  return { path: '', what, instead };
}

/** The value of a text that another program may have stored, whatever the serializer: without keys `__proto__`. */
export function readText(serializer: Pick<AttributeSerializer, 'deserialize'>, text: string): unknown {
  const value = serializer.deserialize(text);
  return leavesOutProto.has(serializer.deserialize) ? value : withoutProto(value);
}

/** Removes keys `__proto__` from plain data, where it stands. Instances of classes are left to who made them. */
export function withoutProto(value: unknown): unknown {
  const found = new Set<object>();
  const add = (each: unknown) => {
    if (typeof each === 'object' && each !== null) found.add(each);
  };
  add(value);
  for (const each of found) {
    if (Array.isArray(each) || each instanceof Set) for (const member of each) add(member);
    else if (each instanceof Map) for (const entry of each) entry.forEach(add);
    else if (isPlain(each)) {
      if (Object.hasOwn(each, PROTO)) delete (each as Record<string, unknown>)[PROTO];
      Object.values(each).forEach(add);
    }
  }
  return value;
}

/** Whether an object is an instance of no class: of whichever realm, only `Object.prototype` has no prototype. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** That of an application. It asks at each use which one, because modules that have a say are made in any order. */
export class ApplicationSerializer extends AttributeSerializer {
  static {
    markSafe(this.prototype.deserialize);
  }

  chosen: AttributeSerializer | undefined;
  byDefault: AttributeSerializer = new JsonAttributeSerializer();

  /** That of these options; undefined when a module has replaced it. */
  static of({ serializer }: { readonly serializer: AttributeSerializer }): ApplicationSerializer | undefined {
    return serializer instanceof ApplicationSerializer ? serializer : undefined;
  }

  serialize(value: unknown): string {
    return this.#current.serialize(value);
  }

  deserialize(text: string): unknown {
    return readText(this.#current, text);
  }

  override hasText(value: unknown, text: string): boolean {
    return hasText(this.#current, value, text);
  }

  get shownName(): string {
    return this.#current.constructor.name;
  }

  get #current(): AttributeSerializer {
    return this.chosen ?? this.byDefault;
  }
}
