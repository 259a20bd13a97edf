import { AttributeSerializer, SerializationProblem } from '@nest-session/core';

/**
 * Serializes attributes as express-session and connect-redis do, by `JSON.stringify()`: a `Date` or an ObjectId comes
 * back as a string, an instance of a class as a plain object, and a `Map` as an empty object. Give it to
 * `RedisSessionModule.forRoot({ serializer })` where the application relies on that; the default refuses such values.
 */
export class ExpressSessionSerializer extends AttributeSerializer {
  serialize(value: unknown): string {
    const text = JSON.stringify(value) as string | undefined;
    if (text !== undefined) return text;
    throw new SerializationProblem(`holds a ${typeof value}, which JSON cannot restore: store plain data`);
  }

  deserialize(text: string): unknown {
    return JSON.parse(text);
  }
}
