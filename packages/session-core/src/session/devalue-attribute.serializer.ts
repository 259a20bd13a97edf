import { parse, stringify } from 'devalue';
import { AttributeSerializer, SerializationProblem } from './attribute.serializer.js';
import {
  forbiddenKey,
  jsonProblem,
  markSafe,
  parseJson,
  shortened,
  withoutProto,
} from './json-attribute.serializer.js';

/** How instances of your classes are stored, in the terms of `devalue`. */
export interface DevalueTypes {
  /** By a name of your choice: returns the data of a value that is of this type, and false for any other value. */
  readonly reducers?: Readonly<Record<string, (value: unknown) => unknown>>;
  /** By the same name: returns a value of this type with the data. */
  readonly revivers?: Readonly<Record<string, (data: never) => unknown>>;
}

// No text of JSON begins like this.
const PREFIX = 'devalue:';

// The name under which a part of an ArrayBuffer is stored.
const PART = 'nest-session.part';

/**
 * Also restores `Date`, `Map`, `Set`, `BigInt`, `Buffer`, `NaN`, `undefined`, circles and everything else that
 * `devalue` can, and instances of the classes that you describe. Refuses keys `__proto__`. Stores a value as JSON if
 * JSON restores it, so that other languages, and what was stored before, stay readable.
 */
export class DevalueAttributeSerializer extends AttributeSerializer {
  static {
    markSafe(this.prototype.deserialize);
  }

  readonly #reducers: Parameters<typeof stringify>[1];
  readonly #revivers: Parameters<typeof parse>[1];

  constructor({ reducers, revivers }: DevalueTypes = {}) {
    super();
    // devalue would restore a Buffer as a Uint8Array.
    this.#reducers = {
      ...reducers,
      Buffer: (value) => Buffer.isBuffer(value) && [value.toString('base64')],
      [PART]: (value) => isPart(value) && [copyOf(value)],
    };
    this.#revivers = {
      ...revivers,
      Buffer: ([base64]: [string]) => Buffer.from(base64, 'base64'),
      [PART]: ([copy]: [ArrayBufferView]) => copy,
    };
  }

  serialize(value: unknown): string {
    const found = jsonProblem(value);
    if (!found) return JSON.stringify(value);
    if (found.isForbidden) throw new SerializationProblem(forbiddenKey(shortened(found.path)));
    try {
      return PREFIX + stringify(value, this.#reducers);
    } catch (error) {
      // Not as the cause: the error has the value.
      throw new SerializationProblem(describe(error));
    }
  }

  deserialize(text: string): unknown {
    // What a reviver returns may have any key.
    return text.startsWith(PREFIX) ? withoutProto(parse(text.slice(PREFIX.length), this.#revivers)) : parseJson(text);
  }
}

/**
 * Whether it shows a part of its ArrayBuffer. devalue would store all of it: that of a typed array around a Buffer has
 * 8 KB of what the process has read and written last.
 */
function isPart(value: unknown): value is ArrayBufferView {
  return ArrayBuffer.isView(value) && value.byteLength !== value.buffer.byteLength;
}

function copyOf({ constructor, buffer, byteOffset, byteLength }: ArrayBufferView): ArrayBufferView {
  return new (constructor as Uint8ArrayConstructor)(buffer.slice(byteOffset, byteOffset + byteLength));
}

function describe(error: unknown): string {
  if (error instanceof RangeError) return 'holds a value that is nested too deeply: store a flatter value';
  const { path = '', message } = error as Partial<Error> & { readonly path?: string };
  // The keys of a Map are data, which belong in no message.
  const place = shortened(path.replace(/\.get\(.*$/s, '.get(...)'));
  // The error of devalue itself: it has the path of the object.
  if (message?.includes('__proto__ keys')) return forbiddenKey(place);
  return (
    `holds a value${place === '' ? '' : ` at ${place}`} that devalue cannot restore: store plain data, or describe its ` +
    'class to the DevalueAttributeSerializer, in `reducers` and `revivers`'
  );
}
