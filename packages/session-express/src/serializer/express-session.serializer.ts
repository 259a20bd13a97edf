import { JsonAttributeSerializer, SerializationProblem } from '@nest-session/core';

/**
 * Serializes attributes as express-session and connect-redis do, with `JSON.stringify()`. A `Date` or an ObjectId comes
 * back as a string, an instance of a class as a plain object, and a `Map` as an empty object. Pass it to
 * `RedisSessionModule.forRoot({ serializer })` if your application relies on that. The default serializer refuses such
 * values. Both refuse keys named `__proto__`, and skip them when they read values that other software stored.
 */
export class ExpressSessionSerializer extends JsonAttributeSerializer {
  /** Calls `JSON.stringify()`. @throws SerializationProblem for values that it leaves out, and for keys `__proto__` */
  override serialize(value: unknown): string {
    const text = JSON.stringify(value) as string | undefined;
    if (text === undefined)
      throw new SerializationProblem(`holds a ${typeof value}, which JSON cannot restore: store plain data`);
    if (text.includes('__proto__') && JSON.stringify(this.deserialize(text)) !== text)
      throw new SerializationProblem('holds a key `__proto__`: remove or rename the key');
    return text;
  }
}
