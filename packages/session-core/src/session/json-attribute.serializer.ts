import { AttributeSerializer, SerializationProblem } from './attribute.serializer.js';

/**
 * Serializes attributes as JSON; the default. Members that are undefined are left out, as `JSON.stringify()` does.
 * Refuses what JSON would silently change, such as `Date`, `Map`, `BigInt`, `NaN`, `undefined` in an array, and
 * instances of classes: to store the data of a DTO, copy it, as in `{ ...dto }`.
 */
export class JsonAttributeSerializer extends AttributeSerializer {
  serialize(value: unknown): string {
    const found = jsonProblem(value);
    if (!found) return JSON.stringify(value);
    const { path, what, instead } = found;
    throw new SerializationProblem(
      `${path === '' ? 'holds a value that' : `holds a value at ${path} that`} ${what}, which JSON cannot restore: ` +
        `${instead}, or set the \`serializer\` option to a serializer that can`,
    );
  }

  deserialize(text: string): unknown {
    return JSON.parse(text);
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

interface JsonProblem {
  readonly path: string;
  readonly what: string;
  /** What to store in its place. */
  readonly instead: string;
}

/** Why JSON cannot restore a value; undefined when it can. */
export function jsonProblem(value: unknown): JsonProblem | undefined {
  try {
    return findProblem(value, new Set());
  } catch (error) {
    // The value is nested deeper than the stack.
    if (error instanceof RangeError) return problem('is nested too deeply', 'store a flatter value');
    throw error;
  }
}

/** The first thing in a value that JSON would change. Its path is put together only when there is one. */
function findProblem(value: unknown, ancestors: Set<object>): JsonProblem | undefined {
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
  if (ancestors.has(value)) return problem('refers back to itself', 'store plain data');
  ancestors.add(value);
  const found = Array.isArray(value) ? problemOfElement(value, ancestors) : problemOfMember(value, ancestors);
  ancestors.delete(value);
  return found;
}

function problemOfElement(array: readonly unknown[], ancestors: Set<object>): JsonProblem | undefined {
  // The prototype of an array is an array. That of an instance of a class that extends it is none.
  if (!Array.isArray(Object.getPrototypeOf(array))) return problemOfInstance(array);
  // By index, because forEach() skips holes, which JSON turns into null.
  for (let index = 0; index < array.length; index++) {
    const found = findProblem(array[index], ancestors);
    if (found) return { ...found, path: `[${index}]${found.path}` };
  }
  return undefined;
}

function problemOfMember(object: object, ancestors: Set<object>): JsonProblem | undefined {
  if (!isPlain(object)) return problemOfInstance(object);
  if ('toJSON' in object && typeof object.toJSON === 'function') {
    return problem('has a toJSON()', 'store plain data');
  }
  for (const key of Object.keys(object)) {
    const member = (object as Record<string, unknown>)[key];
    if (member === undefined) continue;
    const found = findProblem(member, ancestors);
    if (found) return { ...found, path: `.${key}${found.path}` };
  }
  return undefined;
}

/** Whether an object is an instance of no class: of whichever realm, only `Object.prototype` has no prototype. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function problemOfInstance(value: object): JsonProblem {
  const name = value.constructor?.name ?? 'special object';
  return problem(
    `is a ${name}`,
    INSTEAD_OF[name] ?? 'store plain data, such as a copy of its properties, `{ ...value }`',
  );
}

/** By the name of a class. */
const INSTEAD_OF: Readonly<Record<string, string>> = {
  Date: 'store a number, its `getTime()`',
  Map: 'store an array, `[...map]`',
  Set: 'store an array, `[...set]`',
};

function problem(what: string, instead: string): JsonProblem {
  return { path: '', what, instead };
}
