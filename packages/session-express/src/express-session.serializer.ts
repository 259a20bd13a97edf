import { JsonAttributeSerializer, SerializationProblem } from '@nest-session/core';

/**
 * Serializes attributes as express-session does, with `JSON.stringify()`: the default beside `ExpressSessionModule`. A
 * `Date` or an ObjectId comes back as a string, an instance of a class as a plain object, and a `Map` as an empty
 * object. Refuses keys `__proto__`, and skips them when it reads.
 */
export class ExpressSessionSerializer extends JsonAttributeSerializer {
  /** Calls `JSON.stringify()`. @throws SerializationProblem for what that refuses or leaves out, and for `__proto__` */
  override serialize(value: unknown): string {
    const text = textOf(value);
    if (text === undefined)
      throw new SerializationProblem(`holds a ${typeof value}, which JSON cannot restore: store plain data`);
    if (text.includes('__proto__') && JSON.stringify(this.deserialize(text)) !== text)
      throw new SerializationProblem('holds a key `__proto__`: remove or rename the key');
    return text;
  }
}

/** Of a value that an application assigned, whose own `toJSON()` may throw anything. */
function textOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value) as string | undefined;
  } catch (cause) {
    if (!(cause instanceof TypeError || cause instanceof RangeError)) throw cause;
    throw new SerializationProblem(UNWRITABLE, { cause });
  }
}

const UNWRITABLE =
  'holds what JSON.stringify() refuses, such as a bigint or an object that refers back to itself: store plain data, such ' +
  'as a text of the bigint or the id of the object';
