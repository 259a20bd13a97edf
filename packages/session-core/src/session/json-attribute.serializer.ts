import { AttributeSerializer, SerializationProblem } from './attribute.serializer.js';

/**
 * Serializes attributes as JSON; the default. Refuses values that JSON would silently change, such as `Date`, `Map`,
 * `Set`, `BigInt`, `NaN`, and `undefined` inside an object. An instance of a class is stored as its data and comes back
 * as a plain object.
 */
export class JsonAttributeSerializer extends AttributeSerializer {
  serialize(value: unknown): string {
    try {
      checkJson(value, '', new Set());
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
}

function checkJson(value: unknown, path: string, ancestors: Set<object>): void {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return;
    case 'number':
      if (!Number.isFinite(value)) throw problem(path, 'is NaN or infinite');
      return;
    case 'object':
      if (value === null) return;
      break;
    case 'undefined':
      throw problem(path, 'is undefined');
    default:
      throw problem(path, `is a ${typeof value}`);
  }
  if (ancestors.has(value)) throw problem(path, 'refers back to itself');
  ancestors.add(value);
  if (Array.isArray(value)) {
    // By index, because forEach() skips holes, which JSON turns into null.
    for (let index = 0; index < value.length; index++) checkJson(value[index], `${path}[${index}]`, ancestors);
  } else {
    if (!holdsPlainData(value)) throw problem(path, `is a ${value.constructor?.name ?? 'special object'}`);
    for (const [key, member] of Object.entries(value)) checkJson(member, `${path}.${key}`, ancestors);
  }
  ancestors.delete(value);
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
