import { AttributeSerializer, SerializationProblem } from './attribute.serializer.js';

/**
 * Serializes attributes as JSON; the default. Refuses values that JSON would silently change, such as `Date`, `Map`,
 * `Set`, `BigInt`, `NaN`, and `undefined` inside an object. An instance of a class is stored as its data and comes back
 * as a plain object.
 */
export class JsonAttributeSerializer extends AttributeSerializer {
  serialize(value: unknown): string {
    try {
      const found = findProblem(value, new Set());
      if (found) throw problem(found.path, found.what);
      return JSON.stringify(value);
    } catch (error) {
      // The value is nested deeper than the stack.
      if (error instanceof RangeError) throw problem('', 'is nested too deeply');
      throw error;
    }
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

interface FoundProblem {
  readonly path: string;
  readonly what: string;
}

/** The first thing in a value that JSON would change. Its path is put together only when there is one. */
function findProblem(value: unknown, ancestors: Set<object>): FoundProblem | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return undefined;
    case 'number':
      return Number.isFinite(value) ? undefined : { path: '', what: 'is NaN or infinite' };
    case 'object':
      if (value === null) return undefined;
      break;
    case 'undefined':
      return { path: '', what: 'is undefined' };
    default:
      return { path: '', what: `is a ${typeof value}` };
  }
  if (ancestors.has(value)) return { path: '', what: 'refers back to itself' };
  ancestors.add(value);
  const found = Array.isArray(value) ? problemOfElement(value, ancestors) : problemOfMember(value, ancestors);
  ancestors.delete(value);
  return found;
}

function problemOfElement(array: readonly unknown[], ancestors: Set<object>): FoundProblem | undefined {
  // By index, because forEach() skips holes, which JSON turns into null.
  for (let index = 0; index < array.length; index++) {
    const found = findProblem(array[index], ancestors);
    if (found) return { path: `[${index}]${found.path}`, what: found.what };
  }
  return undefined;
}

function problemOfMember(object: object, ancestors: Set<object>): FoundProblem | undefined {
  if (!holdsPlainData(object)) return { path: '', what: `is a ${object.constructor?.name ?? 'special object'}` };
  for (const key of Object.keys(object)) {
    const found = findProblem((object as Record<string, unknown>)[key], ancestors);
    if (found) return { path: `.${key}${found.path}`, what: found.what };
  }
  return undefined;
}

/** Whether the data of an object are its own enumerable properties, unlike those of built-in classes. */
function holdsPlainData(value: object): boolean {
  return (
    Object.prototype.toString.call(value) === '[object Object]' &&
    !('toJSON' in value && typeof value.toJSON === 'function')
  );
}

function problem(path: string, what: string): SerializationProblem {
  return new SerializationProblem(
    `${path === '' ? 'holds a value that' : `holds a value at ${path} that`} ${what}, which JSON cannot restore: ` +
      'store plain data, or set the `serializer` option to a serializer that can',
  );
}
