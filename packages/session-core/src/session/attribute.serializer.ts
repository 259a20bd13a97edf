/** Turns the value of an attribute into text and back. Stores keep the text and never look into it. */
export abstract class AttributeSerializer {
  /**
   * The text of a value, which is never undefined or null.
   * @throws SerializationProblem when `deserialize()` would not give the same value back
   */
  abstract serialize(value: unknown): string;

  /** The value of a text. May throw anything: the attribute then reads as undefined. */
  abstract deserialize(text: string): unknown;

  /**
   * Whether a value still has the text that it was read from or written as. False when unsure: `serialize()` then
   * decides. Implement it if it costs less: every request asks it of each object that it has read.
   */
  hasText?(value: unknown, text: string): boolean;
}

export function hasText(serializer: AttributeSerializer, value: unknown, text: string): boolean {
  if (serializer.hasText) return serializer.hasText(value, text);
  try {
    return serializer.serialize(value) === text;
  } catch {
    return false;
  }
}

/** Why a value cannot be serialized. The message completes `Session attribute "x" ...`, without the value. */
export class SerializationProblem extends Error {
  /** Always 'SerializationProblem'. */
  override readonly name = 'SerializationProblem';
}

/** What an error may say of a failure to serialize a value: the message of any other error may quote the value. */
export function problemWithoutValue(error: unknown): string {
  return error instanceof SerializationProblem ? error.message : 'cannot be serialized';
}

export function isSerializer(value: unknown): value is AttributeSerializer {
  return hasMethod(value, 'serialize') && hasMethod(value, 'deserialize');
}

function hasMethod(value: unknown, name: string): boolean {
  return value instanceof Object && typeof Reflect.get(value, name) === 'function';
}
