import { JsonAttributeSerializer, SerializationProblem } from '@nest-session/core';

/**
 * Serializes attributes as express-session and connect-redis do, by `JSON.stringify()`: a `Date` or an ObjectId comes
 * back as a string, an instance of a class as a plain object, and a `Map` as an empty object. Give it to
 * `RedisSessionModule.forRoot({ serializer })` where the application relies on that; the default refuses such values.
 * Both refuse keys `__proto__`, and leave them out of what others have stored.
 */
export class ExpressSessionSerializer extends JsonAttributeSerializer {
  /** What `JSON.stringify()` writes. @throws SerializationProblem for what it leaves out, and for keys `__proto__` */
  override serialize(value: unknown): string {
    const text = JSON.stringify(value) as string | undefined;
    if (text === undefined)
      throw new SerializationProblem(`holds a ${typeof value}, which JSON cannot restore: store plain data`);
    if (text.includes('__proto__') && JSON.stringify(this.deserialize(text)) !== text)
      throw new SerializationProblem('holds a key `__proto__`: remove or rename the key');
    return text;
  }
}
