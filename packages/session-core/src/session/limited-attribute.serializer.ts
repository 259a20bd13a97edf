import { AttributeSerializer, hasText, SerializationProblem } from './attribute.serializer.js';

/** Refuses values whose text is larger than the option `maxAttributeSize`. */
export class LimitedAttributeSerializer extends AttributeSerializer {
  /** @param maxSize bytes */
  constructor(
    private readonly serializer: AttributeSerializer,
    private readonly maxSize: number,
  ) {
    super();
  }

  serialize(value: unknown): string {
    const text = this.serializer.serialize(value);
    // A character takes three bytes at most.
    if (text.length * 3 <= this.maxSize) return text;
    const size = Buffer.byteLength(text);
    if (size <= this.maxSize) return text;
    throw new SerializationProblem(
      `takes ${size} bytes, more than the option \`maxAttributeSize\` allows (${this.maxSize}): keep such data elsewhere ` +
        'and its key in the session',
    );
  }

  deserialize(text: string): unknown {
    return this.serializer.deserialize(text);
  }

  override hasText(value: unknown, text: string): boolean {
    return hasText(this.serializer, value, text);
  }
}
